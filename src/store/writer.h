/*
 * src/store/writer.h: a day file that is being written: its connection, and what is known of its
 * contents so that nothing is stored twice. Everything since the last commit lies in one open
 * transaction; after a failure the whole struct is closed, and what it knew is read again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "store/codec.h"
#include "store/day.h"
#include "store/dict.h"
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
};

/* What all writers of a store share. */
struct writer_tools {
	struct codec codec;
	struct buf values; /* struct block_value */
	struct buf order;  /* struct block_value: where the values of a sample are */
	struct buf sorted; /* room for sorting */
	struct buf ids;
	struct buf hashes;
	struct buf block;
	struct buf labels;
	uint32_t max_stacks;
	uint32_t max_labelsets;
};
void writer_tools_release(struct writer_tools *t);

int writer_open(struct writer *w, const char *dir, int64_t number, struct err *err);
void writer_close(struct writer *w); /* drops what is not committed */
int writer_begin(struct writer *w, struct err *err);
/* -E2BIG: refused, and nothing was written. Any other failure: close it. */
int writer_write(struct writer *w, struct writer_tools *t, const struct store_entry *entry,
		 struct err *err);
int writer_commit(struct writer *w, struct writer_tools *t, struct err *err);
size_t writer_memory(const struct writer *w);
/* Unloads dictionaries, the least recently used first, until the rest takes max_bytes. */
int writer_shrink(struct writer *w, struct writer_tools *t, size_t max_bytes, struct err *err);
