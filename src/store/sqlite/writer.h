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

struct writer {
	struct day day;
	bool open;
	bool in_transaction;
	bool rolled;   /* some streams are rolled up */
	uint64_t used; /* when, in writes */
	struct dict *dicts;
	struct map by_service; /* hash of the name to struct dict */
	struct map streams;    /* hash of service and type to id */
	struct map labelsets;  /* hash of service and labels to id */
	uint32_t next_service;
	uint32_t next_stream;
	uint32_t next_labelset;
	uint64_t profiles; /* in the open transaction */
	uint64_t samples;
	uint64_t events;
	struct metrics_writer metrics;
};

/* Shared by all writers of a store. */
struct writer_tools {
	struct codec codec;
	struct buf values; /* struct block_value */
	struct buf order;  /* struct block_value: index of a sample's values */
	struct buf sorted; /* room for sorting */
	struct buf ids;
	struct buf hashes;
	struct buf block;
	struct buf labels;
	struct buf attributes;
	struct cells cells;
	uint32_t max_stacks;
	uint32_t max_labelsets;
	uint32_t max_series; /* active, of a service */
	uint32_t max_series_in_all;
};
void writer_tools_release(struct writer_tools *t);

int writer_open(struct writer *w, const char *dir, int64_t number, struct err *err);
void writer_close(struct writer *w); /* discards uncommitted data */
int writer_begin(struct writer *w, struct err *err);
/*
 * The start of every entry: the transaction, and the labels in t->labels. -E2BIG: the service name
 * or the labels are too long.
 */
int writer_begin_entry(struct writer *w, struct writer_tools *t, const char *service,
		       const struct store_label *labels, size_t n_labels, struct err *err);
/* The service in the file, and the label set in t->labels; created if missing. */
int writer_service(struct writer *w, const char *service, struct dict **ret, struct err *err);
int writer_labelset(struct writer *w, struct writer_tools *t, uint32_t service, uint32_t *ret,
		    struct err *err);
/* -E2BIG: refused, nothing was written. Any other failure: close it. */
int writer_write(struct writer *w, struct writer_tools *t, const struct store_entry *entry,
		 struct err *err);
int writer_commit(struct writer *w, struct writer_tools *t, struct err *err);
size_t writer_memory(const struct writer *w);
/* Unloads least recently used dictionaries until the rest takes at most max_bytes. */
int writer_shrink(struct writer *w, struct writer_tools *t, size_t max_bytes, struct err *err);
