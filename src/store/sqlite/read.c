/* src/store/sqlite/read.c: how readers iterate over days and find their streams and label sets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/labels.h"
#include "store/sqlite/state.h"

int store_sqlite_read_file(struct store_sqlite *s, const struct store_sqlite_file *file,
			   store_sqlite_day_fn *fn, void *ctx, struct err *err)
{
	_cleanup_(store_day_close) struct store_day day = {0};
	unsigned int damaged = 0;
	struct err why = {};
	int r = store_day_open_file(&day, s->dir, file->name, file->number, false, &why);

	if (r == 0)
		r = store_day_exec(&day, STORE_DAY_BEGIN_READ, NULL, 0, &why);
	if (r == 0)
		r = fn(ctx, &day, &why);
	if (r == 0)
		r = store_day_exec(&day, STORE_DAY_COMMIT, NULL, 0, &why);
	/* Also where the log is lost with the tables in it: it looks like a file being made. */
	if (day.db)
		damaged = store_sqlite_count_damage(s, &day);
	if (r == -ENOENT && file->past && file->bytes < STORE_SQLITE_EMPTY &&
	    access(day.path, F_OK) == 0)
		r = err_set(&why, -EBADMSG, "the file is empty");
	/* Retention may have deleted the file meanwhile. */
	if (r == -ENOENT || (r < 0 && access(day.path, F_OK) < 0))
		return (int)damaged;
	if (r == -EBADMSG || r == -ENOTSUP) {
		store_sqlite_tell_unreadable(s, &day, why.text);
		return (int)MAX(damaged, 1U);
	}
	if (r < 0 && err)
		*err = why;
	return r < 0 ? r : (int)damaged;
}

int store_sqlite_each_day(struct store_sqlite *s, const struct store_sqlite_span *span,
			  store_sqlite_day_fn *fn, void *ctx, struct err *err)
{
	_cleanup_free_ struct store_sqlite_file *files = NULL;
	size_t n = 0;
	int r = store_sqlite_files(s, &files, &n, err);

	if (span->from_ns >= span->to_ns)
		return 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		int64_t begin = files[i].number * STORE_DAY_NS;

		if (begin >= span->to_ns || begin + STORE_DAY_NS <= span->from_ns)
			continue;
		r = store_sqlite_read_file(s, &files[i], fn, ctx, err);
		if (r > 0 && span->damaged)
			*span->damaged += (uint64_t)r;
		r = MIN(r, 0);
	}
	return r;
}

int store_sqlite_find_service(struct store_day *day, const char *service, uint32_t *ret_id,
			      struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);

	if (r < 0)
		return r;
	while ((r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		if (!view_eq(store_day_blob(stmt, 1), view_str(service)))
			continue;
		store_day_done(stmt);
		*ret_id = (uint32_t)id;
		if (id <= 0 || id > STORE_DAY_MAX_STREAMS)
			store_day_damaged(day, STORE_DAY_SERVICES, id);
		return id > 0 && id <= STORE_DAY_MAX_STREAMS;
	}
	return r;
}

int store_sqlite_find_stream(struct store_day *day, const char *service, const char *type,
			     struct store_sqlite_stream *ret, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);

	if (r < 0)
		return r;
	while ((r = store_day_next(day, stmt, err)) > 0) {
		if (!view_eq(store_day_blob(stmt, 4), view_str(service)) ||
		    !view_eq(store_day_blob(stmt, 2), view_str(type)))
			continue;
		*ret = (struct store_sqlite_stream){
			.id = (uint32_t)sqlite3_column_int64(stmt, 0),
			.service = (uint32_t)sqlite3_column_int64(stmt, 1),
			.snapshot = sqlite3_column_int(stmt, 3) != 0,
		};
		store_day_done(stmt);
		return ret->id > STORE_DAY_MAX_STREAMS ? -EBADMSG : 1;
	}
	return r;
}

static int64_t to_ms(int64_t ns)
{
	return ns / 1000000 + (ns % 1000000 > 0);
}

void store_sqlite_day_window(const struct store_day *day, int64_t from_ns, int64_t to_ns,
			     int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	int64_t begin = day->number * STORE_DAY_MS;

	*ret_from_ms = MIN(MAX(to_ms(from_ns) - begin, 0), STORE_DAY_MS);
	*ret_to_ms = MIN(MAX(to_ms(to_ns) - begin, 0), STORE_DAY_MS);
}

int store_sqlite_filter(struct store_day *day, uint32_t service, const struct store_window *window,
			uint8_t **ret_bits, struct err *err)
{
	_cleanup_free_ uint8_t *bits = NULL;
	sqlite3_stmt *stmt = NULL;
	int r, pass;

	if (window->n_filters == 0) {
		*ret_bits = NULL;
		return 0;
	}
	bits = calloc(1, STORE_DAY_MAX_LABELSETS / 8 + 1);
	if (!bits)
		return err_oom(err);
	r = store_day_query(day, STORE_DAY_LABELSETS, NULL, 0, &stmt, err);
	if (r < 0)
		return r;
	while ((r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		if (sqlite3_column_int64(stmt, 1) != service)
			continue;
		pass = store_labels_match(store_day_blob(stmt, 2), window->filters,
					  window->n_filters);
		if (pass < 0 || id > STORE_DAY_MAX_LABELSETS)
			store_day_damaged(day, STORE_DAY_LABELSETS, id);
		else if (pass)
			bits[id / 8] |= (uint8_t)(1U << id % 8);
	}
	if (r == 0)
		*ret_bits = TAKE_PTR(bits);
	return r;
}
