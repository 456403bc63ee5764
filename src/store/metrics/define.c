/* src/store/metrics/define.c: see define.h. */
#include "store/metrics/define.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/codec/codec.h"
#include "store/metrics/numbers.h"

static int put_text(struct buf *out, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	int r;

	if (len >= STORE_DEFINE_MAX_TEXT)
		return -E2BIG;
	r = buf_append_varint(out, len);
	return r < 0 ? r : buf_append(out, text, len);
}

static size_t count_keys(const struct metric *metric)
{
	size_t n = 0;

	while (n < METRIC_MAX_ATTRIBUTES && metric->attributes[n])
		n++;
	return n;
}

int store_define_encode(const struct metric *metric, struct buf *out)
{
	size_t n_keys = count_keys(metric);
	size_t n_bounds = metric->kind == METRIC_HISTOGRAM ? metric->n_bounds : 0;
	int r = store_codec_begin(out, STORE_CODEC_METRIC);

	if (n_bounds >= STORE_METRICS_MAX_WIDTH)
		return -E2BIG;
	if (r == 0)
		r = put_text(out, metric->name);
	if (r == 0)
		r = buf_append_varint(out, metric->kind);
	if (r == 0)
		r = put_text(out, metric->unit);
	if (r == 0)
		r = put_text(out, metric->stream);
	if (r == 0)
		r = buf_append_varint(out, n_keys);
	for (size_t i = 0; r == 0 && i < n_keys; i++)
		r = put_text(out, metric->attributes[i]);
	if (r == 0)
		r = buf_append_varint(out, n_bounds);
	for (size_t i = 0; r == 0 && i < n_bounds; i++)
		r = store_numbers_put(out, metric->bounds[i]);
	if (r == 0)
		store_codec_end(out);
	return r;
}

static bool get_text(struct view body, size_t *at, char text[STORE_DEFINE_MAX_TEXT])
{
	uint64_t len;

	if (!view_varint(body, at, &len) || len >= STORE_DEFINE_MAX_TEXT ||
	    !view_copy(body, *at, text, len))
		return false;
	text[len] = '\0';
	*at += len;
	return strlen(text) == len;
}

int store_define_decode(struct view block, struct store_definition *ret)
{
	uint64_t kind, n_keys, n_bounds;
	struct store_cursor c;
	struct view body;
	size_t at = 0;
	int r = store_codec_open(block, STORE_CODEC_METRIC, &c);

	if (r < 0)
		return r;
	body = view_of(c.at, store_cursor_left(&c));
	if (!get_text(body, &at, ret->name) || !view_varint(body, &at, &kind) ||
	    kind > METRIC_HISTOGRAM || !get_text(body, &at, ret->unit) ||
	    !get_text(body, &at, ret->stream) || !view_varint(body, &at, &n_keys) ||
	    n_keys > METRIC_MAX_ATTRIBUTES)
		return -EBADMSG;
	ret->kind = (enum metric_kind)kind;
	ret->n_keys = n_keys;
	for (size_t i = 0; i < n_keys; i++)
		if (!get_text(body, &at, ret->keys[i]))
			return -EBADMSG;
	if (!view_varint(body, &at, &n_bounds) || n_bounds >= STORE_METRICS_MAX_WIDTH)
		return -EBADMSG;
	ret->n_bounds = n_bounds;
	for (size_t i = 0; i < n_bounds; i++)
		if (!store_numbers_get(body, &at, &ret->bounds[i]))
			return -EBADMSG;
	return 0;
}

bool store_define_agrees(const struct store_definition *a, const struct store_definition *b)
{
	if (a->kind != b->kind || strcmp(a->unit, b->unit) != 0 || a->n_keys != b->n_keys ||
	    a->n_bounds != b->n_bounds)
		return false;
	for (size_t i = 0; i < a->n_keys; i++)
		if (strcmp(a->keys[i], b->keys[i]) != 0)
			return false;
	return memcmp(a->bounds, b->bounds, a->n_bounds * sizeof(*a->bounds)) == 0;
}

int store_define_put_attributes(const struct metric *metric, const char *const *values,
				struct buf *out)
{
	size_t n = count_keys(metric);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		size_t len = values[i] ? strnlen(values[i], STORE_DEFINE_MAX_VALUE - 1) : 0;

		r = buf_append_varint(out, values[i] ? len + 1 : 0);
		if (r == 0)
			r = buf_append(out, values[i], len);
	}
	return r;
}

bool store_define_attribute(struct view attributes, size_t i, struct view *ret_value)
{
	size_t at = 0;
	uint64_t len = 0;

	*ret_value = view_of(NULL, 0);
	for (size_t k = 0; k <= i; k++) {
		at += k > 0 && len > 0 ? len - 1 : 0;
		if (!view_varint(attributes, &at, &len) || len > STORE_DEFINE_MAX_VALUE)
			return false;
	}
	return len == 0 || view_sub(attributes, at, len - 1, ret_value);
}

void store_dictionary_release(struct store_dictionary *d)
{
	free(d->metrics);
	free(d->columns);
	free(d->texts);
	*d = (struct store_dictionary){0};
}

static int load_metrics(struct store_dictionary *d, struct store_day *day, struct err *err)
{
	_cleanup_(buf_release) struct buf metrics = {0};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_METRICS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		struct store_definition m = {.id = (uint32_t)sqlite3_column_int64(stmt, 0)};

		r = 0;
		if (store_define_decode(store_day_blob(stmt, 1), &m) < 0)
			store_day_damaged(day, STORE_DAY_METRICS, m.id);
		else
			r = buf_append(&metrics, &m, sizeof(m));
	}
	if (r < 0)
		return r;
	d->n_metrics = metrics.len / sizeof(*d->metrics);
	d->metrics = (void *)TAKE_PTR(metrics.data);
	return 0;
}

static const struct store_definition *find_metric(const struct store_dictionary *d, int64_t id)
{
	for (size_t i = 0; i < d->n_metrics; i++)
		if (d->metrics[i].id == id)
			return &d->metrics[i];
	return NULL;
}

static bool check_attributes(struct view attributes, const struct store_definition *m)
{
	struct view value;

	for (size_t i = 0; i < m->n_keys; i++)
		if (!store_define_attribute(attributes, i, &value))
			return false;
	return true;
}

int store_dictionary_load(struct store_dictionary *d, struct store_day *day, uint32_t service,
			  struct err *err)
{
	_cleanup_(buf_release) struct buf columns = {0}, texts = {0};
	const int64_t range[] = {store_day_series_key(service, 0),
				 store_day_series_key(service + 1, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = load_metrics(d, day, err);

	if (r == 0)
		r = store_day_query(day, STORE_DAY_SERIES, range, 2, &stmt, err);
	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		struct store_define_column c = {
			.column = (uint32_t)(sqlite3_column_int64(stmt, 0) &
					     STORE_METRICS_MAX_COLUMN),
			.metric = find_metric(d, sqlite3_column_int64(stmt, 1)),
			.part = sqlite3_column_int(stmt, 2) ? STORE_PART_SUM : STORE_PART_VALUE,
		};
		struct view attributes = store_day_blob(stmt, 3);

		r = 0;
		if (!c.metric || !check_attributes(attributes, c.metric)) {
			store_day_damaged(day, STORE_DAY_SERIES, sqlite3_column_int64(stmt, 0));
			continue;
		}
		/* An offset, until the texts no longer move. */
		c.attributes = view_of((const void *)(uintptr_t)texts.len, attributes.len);
		r = buf_append(&texts, attributes.data, attributes.len);
		if (r == 0)
			r = buf_append(&columns, &c, sizeof(c));
	}
	if (r == 0)
		r = buf_reserve(&texts, 1);
	if (r < 0)
		return r;
	d->n_columns = columns.len / sizeof(*d->columns);
	d->columns = (void *)TAKE_PTR(columns.data);
	d->texts = TAKE_PTR(texts.data);
	for (size_t i = 0; i < d->n_columns; i++)
		d->columns[i].attributes.data = d->texts + (uintptr_t)d->columns[i].attributes.data;
	return 0;
}
