/* src/store/sqlite.h: the embedded store: one SQLite file per UTC day in a folder. */
#pragma once

#include "store/store.h"

struct store_sqlite_config {
	const char *dir;      /* made if missing */
	int64_t retention_ns; /* 0: no limit */
	uint64_t max_bytes;   /* 0: no limit */
	/* Of a service and day; 0: as many as a file can hold. What comes after counts as
	 * "(other)". */
	uint32_t max_stacks;
	uint32_t max_labelsets;
	/* Active series of metrics, of a service and in all; 0: the usual limits. */
	uint32_t max_series;
	uint32_t max_series_in_all;
	int64_t (*now_ns)(void *ctx); /* since 1970; NULL: the machine's clock */
	void *now_ctx;
};

/*
 * Opening takes nothing: a store that is only read may be open in any number of processes. The
 * first write makes this process its only writer; -EBUSY when another one is.
 */
int store_sqlite_open(const struct store_sqlite_config *config, struct store **ret_store,
		      struct err *err);
