/* src/store/sqlite/sqlite.h: the embedded store: one SQLite file per UTC day in a directory. */
#pragma once

#include "store/store.h"

struct store_sqlite_config {
	const char *dir;      /* made if missing */
	int64_t retention_ns; /* 0: no limit */
	uint64_t max_bytes;   /* 0: no limit */
	/* Per service and day; 0: the maximum of a file. What exceeds it counts as "(other)". */
	uint32_t max_stacks;
	uint32_t max_labelsets;
	/* Limits of active metric series, per service and in total; 0: the defaults. */
	uint32_t max_series;
	uint32_t max_series_in_all;
	int64_t (*now_ns)(void *ctx); /* since 1970; NULL: the machine's clock */
	/* Time that only passes, by which jumps of the other are noticed; NULL: the machine's. */
	int64_t (*ran_ns)(void *ctx);
	void *now_ctx;
};

/*
 * Opening takes no lock: any number of processes may read a store. The first write makes this
 * process the only writer; -EBUSY if there is another.
 */
int store_sqlite_open(const struct store_sqlite_config *config, struct store **ret_store,
		      struct err *err);
