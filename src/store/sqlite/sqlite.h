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
	/* Limits of active metric series, per service, per owner and in total; 0: the defaults. */
	uint32_t max_series;
	uint32_t max_series_of_owner;
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

#define STORE_SQLITE_FINDINGS 100 /* kept per file */

/* What is in a file, and what is wrong with it. */
struct store_sqlite_report {
	char name[64];
	uint64_t bytes;
	uint64_t rows;	    /* whole ones */
	uint64_t damaged;   /* pages and rows */
	uint64_t corrected; /* pages of which nothing is lost */
	bool checksums;	    /* of pages; files of older versions have none */
	bool unreadable;    /* the file as a whole */
	bool unknown;	    /* of a newer version: left alone */
	bool repaired;	    /* it has been written anew, or deleted if unreadable */
	size_t n_findings;
	char findings[STORE_SQLITE_FINDINGS][160];
};
/* A negative return ends it. */
typedef int store_sqlite_report_fn(void *ctx, const struct store_sqlite_report *report);
/* Reads all of each file; calls fn for each, oldest first. */
int store_sqlite_check(struct store *store, store_sqlite_report_fn *fn, void *ctx, struct err *err);
/*
 * The same, and writes damaged files anew, with all that is whole. -EBUSY if another process is
 * writing.
 */
int store_sqlite_repair(struct store *store, store_sqlite_report_fn *fn, void *ctx,
			struct err *err);
