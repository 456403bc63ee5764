/*
 * src/store/sqlite/writer.h: a day file being written: its connection, and what is known of its
 * contents, so nothing is stored twice. Everything since the last commit is in one open
 * transaction. After a failure the whole struct is closed and reloaded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "store/codec/codec.h"
#include "store/metrics/cells.h"
#include "store/metrics/write.h"
#include "store/sqlite/day.h"
#include "store/sqlite/dict.h"
#include "store/store.h"
#include "store/totals/write.h"

struct store_writer {
	struct store_day day;
	bool open;
	bool in_transaction;
	bool rolled;   /* some streams are rolled up */
	bool log_left; /* a reader kept the log from being truncated */
	uint64_t used; /* when, in writes */
	struct store_dict *dicts;
	struct map by_service; /* hash of the name to struct store_dict */
	struct map by_id;      /* the same */
	struct store_owners owners;
	struct map streams;   /* hash of service and type to id */
	struct map labelsets; /* hash of service and labels to id */
	uint32_t next_service;
	uint32_t next_stream;
	uint32_t next_labelset;
	uint64_t profiles; /* in the open transaction */
	uint64_t samples;
	uint64_t events;
	struct store_metrics_writer metrics;
	struct store_totals_writer totals;
};

/* Shared by all writers of a store. */
struct store_writer_tools {
	struct store_codec codec;
	struct buf values; /* struct store_block_value */
	struct buf order;  /* struct store_block_value: index of a sample's values */
	struct buf sorted; /* room for sorting */
	struct buf ids;
	struct buf hashes;
	struct buf block;
	struct buf labels;
	struct buf attributes;
	struct store_cells cells;
	struct store_budget budget;
	/* What was over it since somebody asked. */
	uint64_t over;
	char over_service[256];
	uint32_t over_uid;
};
void store_writer_tools_release(struct store_writer_tools *t);

int store_writer_open(struct store_writer *w, const char *dir, int64_t number, struct err *err);
void store_writer_close(struct store_writer *w); /* discards uncommitted data */
int store_writer_begin(struct store_writer *w, struct err *err);
/*
 * The start of every entry: the transaction, and the labels in t->labels. -E2BIG: the service name
 * or the labels are too long.
 */
int store_writer_begin_entry(struct store_writer *w, struct store_writer_tools *t,
			     const char *service, const struct label *labels, size_t n_labels,
			     struct err *err);
/*
 * The service in the file, and the label set in t->labels; created if missing. Over the budget, it
 * is the owner's "(other)", or label set 0.
 */
int store_writer_service(struct store_writer *w, struct store_writer_tools *t, const char *service,
			 uint32_t uid, struct store_dict **ret, struct err *err);
int store_writer_labelset(struct store_writer *w, struct store_writer_tools *t,
			  struct store_dict *d, uint32_t *ret, struct err *err);
/* Notes what is over the budget of a service, or of its owner. */
void store_writer_over(struct store_writer_tools *t, const char *service, uint32_t uid, uint64_t n);
/* -E2BIG: refused, nothing was written. Any other failure: close it. */
int store_writer_write(struct store_writer *w, struct store_writer_tools *t,
		       const struct store_entry *entry, struct err *err);
int store_writer_commit(struct store_writer *w, struct store_writer_tools *t, struct err *err);
/*
 * Writes the log back and truncates it: after packing it is several times what is left of the day.
 * Does not wait for readers; what they hold back is tried again.
 */
void store_writer_write_back(struct store_writer *w);
size_t store_writer_memory(const struct store_writer *w);
/* Unloads least recently used dictionaries until the rest takes at most max_bytes. */
int store_writer_shrink(struct store_writer *w, struct store_writer_tools *t, size_t max_bytes,
			struct err *err);
