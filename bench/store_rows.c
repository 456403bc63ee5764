/*
 * bench/store_rows.c: what one would write first: a row per sample in SQLite, in the order of the
 * questions. Stacks are numbers that cost nothing here: no names are kept, and no stack is looked
 * up, neither when it is written nor in a sum.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "store_engine.h"

struct rows {
	struct engine base;
	char path[512];
	sqlite3 *db;
	sqlite3_stmt *insert;
	sqlite3_stmt *sum;
};

static void check(struct rows *r, int rc)
{
	if (rc != SQLITE_OK)
		engine_fail("%s: %s", r->path, sqlite3_errmsg(r->db));
}

static struct engine *rows_open(const char *place, struct load *load)
{
	struct rows *r = calloc(1, sizeof(*r));

	(void)load;
	if (!r)
		engine_fail("no memory");
	r->base.ops = &engine_rows;
	(void)snprintf(r->path, sizeof(r->path), "%s/rows.db", place);
	check(r, sqlite3_open(r->path, &r->db));
	check(r,
	      sqlite3_exec(r->db,
			   "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
			   "CREATE TABLE sample(stream INT, time INT, process INT, stack INT,"
			   " value INT, PRIMARY KEY(stream, time, process, stack)) WITHOUT ROWID;"
			   "BEGIN",
			   NULL, NULL, NULL));
	check(r, sqlite3_prepare_v2(r->db, "INSERT INTO sample VALUES(?,?,?,?,?)", -1, &r->insert,
				    NULL));
	check(r, sqlite3_prepare_v2(r->db,
				    "SELECT stack, sum(value) FROM sample WHERE stream=? AND "
				    "time>=? AND time<? GROUP BY stack",
				    -1, &r->sum, NULL));
	return &r->base;
}

static void rows_write(struct engine *base, const struct load_draw *d)
{
	struct rows *r = (struct rows *)base;
	uint64_t start = clock_cpu_ns();

	for (uint32_t i = 0; i < d->n; i++) {
		for (unsigned int t = 0; t < LOAD_TYPES; t++) {
			if (d->values[i][t] == 0)
				continue;
			(void)sqlite3_bind_int64(r->insert, 1, d->service * LOAD_TYPES + t);
			(void)sqlite3_bind_int64(r->insert, 2, d->time_ns / 1000000000);
			(void)sqlite3_bind_int64(r->insert, 3, d->pid);
			(void)sqlite3_bind_int64(r->insert, 4, d->stacks[i]);
			(void)sqlite3_bind_int64(r->insert, 5, d->values[i][t]);
			(void)sqlite3_step(r->insert);
			check(r, sqlite3_reset(r->insert));
		}
	}
	base->write_cpu_ns += clock_cpu_ns() - start;
}

static void rows_commit(struct engine *base, int64_t now_ns)
{
	struct rows *r = (struct rows *)base;
	uint64_t start = clock_cpu_ns();

	(void)now_ns;
	check(r, sqlite3_exec(r->db, "COMMIT; BEGIN", NULL, NULL, NULL));
	base->write_cpu_ns += clock_cpu_ns() - start;
}

static void rows_settle(struct engine *base, int64_t now_ns)
{
	struct rows *r = (struct rows *)base;
	uint64_t start = clock_cpu_ns();

	(void)now_ns;
	check(r, sqlite3_exec(r->db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE); BEGIN", NULL, NULL,
			      NULL));
	base->pack_cpu_ns += clock_cpu_ns() - start;
}

static void rows_sum(struct engine *base, unsigned int service, unsigned int type,
		     const int64_t window_ns[2], struct engine_sum *ret)
{
	struct rows *r = (struct rows *)base;

	*ret = (struct engine_sum){0};
	(void)sqlite3_bind_int64(r->sum, 1, service * LOAD_TYPES + type);
	(void)sqlite3_bind_int64(r->sum, 2, window_ns[0] / 1000000000);
	(void)sqlite3_bind_int64(r->sum, 3, window_ns[1] / 1000000000);
	while (sqlite3_step(r->sum) == SQLITE_ROW) {
		ret->total += sqlite3_column_int64(r->sum, 1);
		ret->stacks++;
	}
	check(r, sqlite3_reset(r->sum));
}

static uint64_t rows_cpu_ns(struct engine *base)
{
	(void)base;
	return clock_cpu_ns();
}

static uint64_t rows_bytes(struct engine *base)
{
	struct rows *r = (struct rows *)base;
	struct stat st;

	return stat(r->path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void rows_close(struct engine *base)
{
	struct rows *r = (struct rows *)base;

	(void)sqlite3_finalize(r->insert);
	(void)sqlite3_finalize(r->sum);
	(void)sqlite3_close(r->db);
	free(r);
}

const struct engine_ops engine_rows = {
	.open = rows_open,
	.write = rows_write,
	.commit = rows_commit,
	.settle = rows_settle,
	.sum = rows_sum,
	.cpu_ns = rows_cpu_ns,
	.bytes = rows_bytes,
	.close = rows_close,
};
