/*
 * src/store/totals/write.h: the totals of a day file being written. A minute is kept in memory and
 * written with each commit, in the same transaction as its points; after a restart it goes on from
 * the file. Ten minutes that are over are added up once more, so that long windows read few rows;
 * a point that comes later drops that sum, and it is made again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "store/totals/block.h"

struct store_writer;
struct store_writer_tools;

#define STORE_TOTALS_OPEN 64 /* minutes in memory: of a collection that is spread over them */

struct store_totals_writer {
	bool loaded;
	struct map types; /* hash of the name, to its id */
	uint32_t next_type;
	struct store_totals_minute minutes[STORE_TOTALS_OPEN];
	size_t n_minutes;
	unsigned int next_slot; /* those before it are added up, or empty */
	/* Label sets of services without a process that lived for a minute: when first seen. */
	struct map seen, seen_before;
	uint32_t seen_minute;
};
void store_totals_writer_release(struct store_totals_writer *t);
size_t store_totals_writer_memory(const struct store_totals_writer *t);

/* One point of one process. */
struct store_totals_point {
	uint32_t service;
	const char *type;
	bool snapshot;
	bool again; /* the process has one at this time already: this is added to it */
	int64_t ms; /* in the day */
	int64_t value;
};
int store_totals_write(struct store_writer *w, struct store_writer_tools *t,
		       const struct store_totals_point *point, struct err *err);
/* Within the transaction, before it ends. */
int store_totals_flush(struct store_writer *w, struct store_writer_tools *t, struct err *err);
/* Adds up the slots that end by this time of the day; within a transaction of its own. */
int store_totals_roll_up(struct store_writer *w, struct store_writer_tools *t, int64_t until_ms,
			 struct err *err);
/*
 * Takes a service out of the minutes of the hours [first, end), or, with 24 hours, of the whole
 * day. Within the open transaction.
 */
struct store_totals_drop {
	const uint8_t *services; /* bits */
	unsigned int first_hour;
	unsigned int end_hour;
};
int store_totals_drop(struct store_writer *w, struct store_writer_tools *t,
		      const struct store_totals_drop *drop, struct err *err);
