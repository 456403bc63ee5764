/* src/store/sqlite/label_totals.c: totals of a stream by the values of a label, from its points. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "store/codec/labels.h"
#include "store/sqlite/state.h"

struct totalling {
	const struct store_window *window;
	struct view key;
	struct intern values;
	struct buf sums;    /* double, by value */
	uint32_t *value_of; /* of the day: label set to value, plus 1; 0: it lacks the label */
	uint32_t labelset;  /* being read */
};

static void totalling_release(struct totalling *t)
{
	intern_release(&t->values);
	buf_release(&t->sums);
	free(t->value_of);
}

static int total_label(void *ctx, struct view key, struct view value)
{
	struct totalling *t = ctx;
	const double none = 0;
	uint32_t id;
	int r;

	if (!view_eq(key, t->key))
		return 0;
	r = intern_add(&t->values, value, &id);
	if (r == 0 && id == t->sums.len / sizeof(none))
		r = buf_append(&t->sums, &none, sizeof(none));
	if (r == 0)
		t->value_of[t->labelset] = id + 1;
	return r;
}

static int total_labelsets(struct totalling *t, struct store_day *day, uint32_t service,
			   const uint8_t *bits, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_LABELSETS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		r = 0;
		if (sqlite3_column_int64(stmt, 1) != service)
			continue;
		t->labelset = (uint32_t)id;
		if (id > STORE_DAY_MAX_LABELSETS)
			store_day_damaged(day, STORE_DAY_LABELSETS, id);
		else if (store_sqlite_passes(bits, t->labelset))
			r = store_labels_each(store_day_blob(stmt, 2), total_label, t);
		if (r == -EBADMSG) {
			store_day_damaged(day, STORE_DAY_LABELSETS, id);
			r = 0;
		}
		if (r < 0) {
			store_day_done(stmt);
			return err_oom(err);
		}
	}
	return r;
}

static int total_points(struct totalling *t, struct store_day *day, uint32_t stream,
			struct err *err)
{
	double *sums = (void *)t->sums.data;
	int64_t from_ms, to_ms;
	sqlite3_stmt *stmt = NULL;
	int r;

	store_sqlite_day_window(day, t->window->from_ns, t->window->to_ns, &from_ms, &to_ms);
	r = store_day_query(day, STORE_DAY_POINTS,
			    (const int64_t[]){store_day_key(stream, from_ms, 0),
					      store_day_key(stream, to_ms, 0)},
			    2, &stmt, err);
	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		uint32_t value = t->value_of[store_day_key_labelset(sqlite3_column_int64(stmt, 0))];

		if (value)
			sums[value - 1] += (double)sqlite3_column_int64(stmt, 1);
		r = 0;
	}
	return r;
}

static int total_day(void *ctx, struct store_day *day, struct err *err)
{
	struct totalling *t = ctx;
	_cleanup_free_ uint8_t *bits = NULL;
	struct store_sqlite_stream stream;
	int r = store_sqlite_find_stream(day, t->window->service, t->window->type, &stream, err);

	if (r <= 0)
		return r;
	memset(t->value_of, 0, (STORE_DAY_MAX_LABELSETS + 1) * sizeof(*t->value_of));
	r = store_sqlite_filter(day, stream.service, t->window, &bits, err);
	if (r == 0)
		r = total_labelsets(t, day, stream.service, bits, err);
	return r < 0 ? r : total_points(t, day, stream.id, err);
}

/* Array and texts in one block. */
static int total_copy(const struct totalling *t, struct store_label_total **ret_totals,
		      size_t *ret_len)
{
	const double *sums = (const void *)t->sums.data;
	struct store_label_total *totals;
	uint32_t n = t->values.len;
	size_t bytes = 0;
	char *at;

	for (uint32_t i = 0; i < n; i++)
		bytes += intern_get(&t->values, i).len + 1;
	totals = calloc(1, n * sizeof(*totals) + bytes + 1);
	if (!totals)
		return -ENOMEM;
	at = (char *)(totals + n);
	for (uint32_t i = 0; i < n; i++) {
		struct view value = intern_get(&t->values, i);

		totals[i] = (struct store_label_total){.value = at, .total = sums[i]};
		(void)view_copy(value, 0, at, value.len);
		at += value.len + 1;
	}
	*ret_totals = totals;
	*ret_len = n;
	return 0;
}

int store_sqlite_label_totals(struct store *store, const struct store_window *window,
			      const char *key, struct store_label_total **ret_totals,
			      size_t *ret_len, struct err *err)
{
	const struct store_sqlite_span span = {window->from_ns, window->to_ns, NULL};
	_cleanup_(totalling_release) struct totalling t = {.window = window, .key = view_str(key)};
	int r;

	t.value_of = malloc((STORE_DAY_MAX_LABELSETS + 1) * sizeof(*t.value_of));
	if (!t.value_of)
		return err_oom(err);
	r = store_sqlite_each_day(store_sqlite(store), &span, total_day, &t, err);
	if (r < 0)
		return r;
	return total_copy(&t, ret_totals, ret_len) < 0 ? err_oom(err) : 0;
}
