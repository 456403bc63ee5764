/*
 * src/store/sqlite/check.c: see check.h. Pages are checked first, all of them; then rows, each by
 * its own checksum where it has one, and by its form; then how pages hang together.
 */
#include "store/sqlite/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/codec/codec.h"
#include "store/codec/labels.h"
#include "store/sqlite/state.h"
#include "store/sqlite/vfs.h"
#include "store/totals/block.h"

#define MAX_STRUCTURE 20 /* findings */

__attribute__((format(printf, 2, 3))) static void add_finding(struct store_sqlite_report *report,
							      const char *format, ...)
{
	va_list args;

	report->damaged++;
	if (report->n_findings == STORE_SQLITE_FINDINGS)
		return;
	va_start(args, format);
	(void)vsnprintf(report->findings[report->n_findings++], sizeof(report->findings[0]), format,
			args);
	va_end(args);
}

/* --- rows */

static bool is_block(sqlite3_stmt *row, int column, enum store_codec_kind kind)
{
	struct view block = store_day_blob(row, column);

	return store_codec_is_whole(block) && block.data[1] == kind;
}

static bool is_sums(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_SUMS);
}

static bool is_pack(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_PACK);
}

static bool is_frames(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_FRAMES);
}

static bool is_stacks(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_STACKS) || is_block(row, 1, STORE_CODEC_STACKS_1);
}

static bool is_metric(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_METRIC);
}

static bool is_reading(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_READING);
}

static bool is_times(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_TIMES);
}

static bool is_hour(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_HOUR);
}

static bool is_event(sqlite3_stmt *row)
{
	return is_block(row, 3, STORE_CODEC_EVENT);
}

static bool is_id(sqlite3_stmt *row, int column, int64_t most)
{
	int64_t id = sqlite3_column_int64(row, column);

	return sqlite3_column_type(row, column) == SQLITE_INTEGER && id >= 0 && id <= most;
}

static bool is_text(sqlite3_stmt *row, int column, size_t most)
{
	struct view text = store_day_blob(row, column);

	return sqlite3_column_type(row, column) == SQLITE_TEXT && text.len > 0 && text.len < most;
}

static bool is_service(sqlite3_stmt *row)
{
	return is_id(row, 0, STORE_DAY_MAX_STREAMS) &&
	       is_text(row, 1, sizeof(((struct store_stream *)0)->service));
}

static bool is_stream(sqlite3_stmt *row)
{
	return is_id(row, 0, STORE_DAY_MAX_STREAMS) && is_id(row, 1, STORE_DAY_MAX_STREAMS) &&
	       is_text(row, 2, sizeof(((struct store_stream *)0)->type)) && is_id(row, 3, 1);
}

static int on_label(void *ctx, struct view key, struct view value)
{
	(void)ctx, (void)key, (void)value;
	return 0;
}

static bool is_labelset(sqlite3_stmt *row)
{
	return is_id(row, 0, STORE_DAY_MAX_LABELSETS) && is_id(row, 1, STORE_DAY_MAX_STREAMS) &&
	       store_labels_each(store_day_blob(row, 2), on_label, NULL) == 0;
}

static bool is_series(sqlite3_stmt *row)
{
	return is_id(row, 0, INT64_MAX) && is_id(row, 1, INT64_MAX) && is_id(row, 2, 1) &&
	       sqlite3_column_type(row, 3) == SQLITE_BLOB;
}

static bool is_point(sqlite3_stmt *row)
{
	return sqlite3_column_type(row, 1) == SQLITE_INTEGER;
}

static bool is_owner(sqlite3_stmt *row)
{
	return is_id(row, 0, STORE_DAY_MAX_STREAMS) && is_id(row, 1, UINT32_MAX) &&
	       is_id(row, 2, INT64_MAX);
}

static bool is_total_type(sqlite3_stmt *row)
{
	return is_id(row, 0, STORE_TOTALS_MAX_TYPES - 1) &&
	       is_text(row, 1, sizeof(((struct store_stream *)0)->type)) && is_id(row, 2, 1);
}

static bool is_total(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_TOTALS);
}

static bool is_about(sqlite3_stmt *row)
{
	return is_block(row, 1, STORE_CODEC_ABOUT);
}

static const struct store_check_table tables[] = {
	{"service", STORE_DAY_SERVICES, STORE_DAY_PUT_SERVICE, "12", is_service},
	{"stream", STORE_DAY_STREAMS, STORE_DAY_PUT_STREAM, "1234", is_stream},
	{"labelset", STORE_DAY_LABELSETS, STORE_DAY_PUT_LABELSET, "123", is_labelset},
	{"frame_chunk", STORE_DAY_FRAMES, STORE_DAY_PUT_FRAMES, "12", is_frames},
	{"stack_chunk", STORE_DAY_STACKS, STORE_DAY_PUT_STACKS, "12", is_stacks},
	{"profile", STORE_DAY_PROFILES, STORE_DAY_PUT_PROFILE, "12", is_sums},
	{"point", STORE_DAY_POINTS, STORE_DAY_PUT_POINT, "12", is_point},
	{"pack", STORE_DAY_PACKS, STORE_DAY_PUT_PACK, "12", is_pack},
	{"rollup", STORE_DAY_ROLLUPS, STORE_DAY_PUT_ROLLUP, "12", is_sums},
	{"rolled", STORE_DAY_ALL_ROLLED, STORE_DAY_PUT_ROLLED, "12", is_point},
};

static const struct store_check_table tables_since_3[] = {
	{"metric", STORE_DAY_METRICS, STORE_DAY_PUT_METRIC, "12", is_metric},
	{"series", STORE_DAY_SERIES, STORE_DAY_PUT_SERIES, "1234", is_series},
	{"reading", STORE_DAY_READINGS, STORE_DAY_SET_READING, "12", is_reading},
	{"times", STORE_DAY_TIMES, STORE_DAY_PUT_TIMES, "12", is_times},
	{"hour", STORE_DAY_HOURS, STORE_DAY_PUT_HOUR, "12", is_hour},
	{"event", STORE_DAY_EVENTS, STORE_DAY_PUT_EVENT, "1342", is_event},
};

static const struct store_check_table tables_since_4[] = {
	{"owner", STORE_DAY_OWNERS, STORE_DAY_PUT_OWNER, "123", is_owner},
};

static const struct store_check_table tables_since_5[] = {
	{"total_type", STORE_DAY_TOTAL_TYPES, STORE_DAY_PUT_TOTAL_TYPE, "132", is_total_type},
	{"total", STORE_DAY_TOTALS, STORE_DAY_PUT_TOTAL, "12", is_total},
	{"about", STORE_DAY_ABOUTS, STORE_DAY_PUT_ABOUT, "12", is_about},
};

struct checking {
	struct store_day *day;
	struct store_sqlite_report *report;
	store_check_row_fn *fn;
	void *ctx;
	struct err *err;
};

static int check_table(struct checking *c, const struct store_check_table *t)
{
	struct store_day *day = c->day;
	uint64_t lost = day->damage.found;
	sqlite3_stmt *row = NULL;
	int r = store_day_query(day, t->read, NULL, 0, &row, c->err);

	while (r == 0 && (r = store_day_next(day, row, c->err)) > 0) {
		r = 0;
		if (!t->is_whole(row)) {
			add_finding(c->report, "table %s, row %lld: damaged", t->name,
				    (long long)sqlite3_column_int64(row, 0));
			continue;
		}
		c->report->rows++;
		if (c->fn)
			r = c->fn(c->ctx, t, row, c->err);
		if (r < 0)
			store_day_done(row);
	}
	if (r == -EBADMSG || day->damage.found != lost)
		add_finding(c->report, "table %s: some rows cannot be read", t->name);
	return r == -EBADMSG ? 0 : r;
}

static int check_tables(struct checking *c, const struct store_check_table *t, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = check_table(c, &t[i]);
	return r;
}

/* --- pages */

static void add_pages(const struct store_day *day, struct store_sqlite_report *report)
{
	const struct store_vfs_damage *d = store_vfs_damage(day->db);

	for (size_t i = 0; i < d->n; i++) {
		if (d->items[i].kind == STORE_VFS_CORRECTED)
			report->corrected++;
		else if (d->items[i].kind == STORE_VFS_LOG)
			add_finding(report, "log: the commits after a damaged one are lost");
		else
			add_finding(report, "page %u: damaged", d->items[i].page);
	}
}

/*
 * Where pages have no checksums, how they hang together is all that can be said of them. Where some
 * are damaged, others do not hang together because of them.
 */
static void check_structure(struct checking *c)
{
	sqlite3_stmt *stmt = NULL;
	int n = 0;

	if (sqlite3_prepare_v2(c->day->db, "PRAGMA integrity_check(20)", -1, &stmt, NULL) !=
	    SQLITE_OK)
		return;
	while (n++ < MAX_STRUCTURE && sqlite3_step(stmt) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(stmt, 0);

		if (text && strcmp(text, "ok") != 0)
			add_finding(c->report, "structure: %.100s", text);
	}
	(void)sqlite3_finalize(stmt);
}

int store_check_day(struct store_day *day, struct store_sqlite_report *report,
		    store_check_row_fn *fn, void *ctx, struct err *err)
{
	struct checking c = {.day = day, .report = report, .fn = fn, .ctx = ctx, .err = err};
	uint64_t pages = 0;
	int r = store_day_exec(day, STORE_DAY_BEGIN_READ, NULL, 0, err);

	if (r == 0)
		r = check_tables(&c, tables, ARRAY_SIZE(tables));
	if (r == 0 && store_day_has_metrics(day))
		r = check_tables(&c, tables_since_3, ARRAY_SIZE(tables_since_3));
	if (r == 0 && store_day_has_owners(day))
		r = check_tables(&c, tables_since_4, ARRAY_SIZE(tables_since_4));
	if (r == 0 && store_day_has_totals(day))
		r = check_tables(&c, tables_since_5, ARRAY_SIZE(tables_since_5));
	report->checksums = store_vfs_is_sealed(day->db);
	if (r == 0 && !fn) {
		if (store_vfs_read_all(day->db, &pages) < 0)
			r = err_set(err, -EIO, "%s: cannot be read", day->path);
		if (store_vfs_damage(day->db)->n == 0)
			check_structure(&c);
	}
	add_pages(day, report);
	(void)store_day_exec(day, STORE_DAY_COMMIT, NULL, 0, NULL);
	return r;
}

/* --- all files */

static int check_file(struct store_sqlite *s, const struct store_sqlite_file *file,
		      struct store_sqlite_report *report, struct err *err)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	struct err why = {};
	int r = store_day_open_file(&day, s->dir, file->name, file->number, false, &why);

	if (r == 0)
		r = store_check_day(&day, report, NULL, NULL, &why);
	else if (day.db)
		add_pages(&day, report);
	if (r == -ENOENT && file->bytes < STORE_SQLITE_EMPTY && access(day.path, F_OK) == 0)
		r = err_set(&why, -EBADMSG, "the file is empty");
	if (r == -EBADMSG)
		add_finding(report, "file: %.120s", why.text);
	/* Without tables it is one that is being made, or they were in a log that is lost. */
	report->unreadable = r == -EBADMSG || (r == -ENOENT && report->damaged > 0);
	report->unknown = r == -ENOTSUP;
	/* Retention may have deleted it meanwhile. */
	if (r == -EBADMSG || r == -ENOTSUP || r == -ENOENT)
		return 0;
	if (r < 0 && err)
		*err = why;
	return r;
}

static int each_file(struct store_sqlite *s, bool repair, store_sqlite_report_fn *fn, void *ctx,
		     struct err *err)
{
	_cleanup_free_ struct store_sqlite_report *report = malloc(sizeof(*report));
	_cleanup_free_ struct store_sqlite_file *files = NULL;
	size_t n = 0;
	int r = report ? store_sqlite_files(s, &files, &n, err) : err_oom(err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		*report = (struct store_sqlite_report){.bytes = files[i].bytes};
		(void)snprintf(report->name, sizeof(report->name), "%s", files[i].name);
		r = check_file(s, &files[i], report, err);
		if (r == 0 && repair && report->damaged + report->corrected > 0)
			r = store_sqlite_repair_file(s, &files[i], report, err);
		if (r == 0)
			r = fn(ctx, report);
	}
	return r;
}

int store_sqlite_check(struct store *store, store_sqlite_report_fn *fn, void *ctx, struct err *err)
{
	return each_file(store_sqlite(store), false, fn, ctx, err);
}

int store_sqlite_repair(struct store *store, store_sqlite_report_fn *fn, void *ctx, struct err *err)
{
	struct store_sqlite *s = store_sqlite(store);
	int r = store_sqlite_lock_folder(s, err);

	return r < 0 ? r : each_file(s, true, fn, ctx, err);
}
