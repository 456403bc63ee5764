/* src/store/sqlite/check.h: reads all of a day file, row by row. */
#pragma once

#include "store/sqlite/day.h"
#include "store/sqlite/sqlite.h"

/* One table: how it is read, and written to another file. */
struct store_check_table {
	const char *name;
	enum store_day_sql read;
	enum store_day_sql put;
	const char *places; /* of its columns in put: "1342" */
	/* Of a row; false if it is damaged. */
	bool (*is_whole)(sqlite3_stmt *row);
};

/* Called for each whole row. */
typedef int store_check_row_fn(void *ctx, const struct store_check_table *table, sqlite3_stmt *row,
			       struct err *err);
/* Looks at everything; what is wrong is added to the report. fn: NULL if there is no more to do. */
int store_check_day(struct store_day *day, struct store_sqlite_report *report,
		    store_check_row_fn *fn, void *ctx, struct err *err);
