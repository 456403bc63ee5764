/* src/store/sqlite.h: the embedded store: one SQLite file per UTC day in a folder. */
#pragma once

#include "store/store.h"

struct store_sqlite_config {
	const char *dir; /* made if missing */
	int64_t retention_ns;
	uint64_t max_bytes;
};
int store_sqlite_open(const struct store_sqlite_config *config, struct store **ret_store,
		      struct err *err);
