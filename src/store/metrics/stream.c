/* src/store/metrics/stream.c: see stream.h. */
#include "store/metrics/stream.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/metrics/define.h"
#include "store/metrics/scan.h"
#include "store/sqlite/state.h"

struct streaming {
	struct store_metrics_stream *out;
	const uint8_t *labelsets; /* bits */
	struct buf run;		  /* uint32_t: times of the batch before, in the day */
};

/* Most resources are collected at the same times; these are stored once. */
static int keep_times(struct streaming *s, const struct store_metrics_batch *b)
{
	_cleanup_(buf_release) struct buf run = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->n; i++) {
		uint32_t ms = (uint32_t)(b->begin_ms + b->times_ms[i]);

		if (!isnan(b->values[i]))
			r = buf_append(&run, &ms, sizeof(ms));
	}
	if (r < 0 || view_eq(buf_view(&run), buf_view(&s->run)))
		return r;
	r = buf_append(&s->out->times, run.data, run.len);
	buf_clear(&s->run);
	return r < 0 ? r : buf_append(&s->run, run.data, run.len);
}

static int stream_batch(void *ctx, const struct store_metrics_batch *b)
{
	struct streaming *s = ctx;

	if (b->width == 1 && store_sqlite_passes(s->labelsets, b->labelset))
		for (size_t i = 0; i < b->n; i++)
			if (!isnan(b->values[i]))
				s->out->fn(s->out->ctx, b->begin_ms + b->times_ms[i], b->values[i]);
	return b->width == 1 ? keep_times(s, b) : 0;
}

static int compare_times(const void *va, const void *vb)
{
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	return a < b ? -1 : a > b;
}

static void sort_times(struct buf *times)
{
	uint32_t *t = (void *)times->data;
	size_t n = times->len / sizeof(*t), len = 0;

	if (n > 0)
		qsort(t, n, sizeof(*t), compare_times);
	for (size_t i = 0; i < n; i++)
		if (len == 0 || t[len - 1] != t[i])
			t[len++] = t[i];
	times->len = len * sizeof(*t);
}

/* The bits of the columns of a stream; false if none. */
static bool find_columns(const struct store_dictionary *d, const char *type, uint8_t *bits,
			 bool *ret_snapshot)
{
	bool found = false;

	memset(bits, 0, STORE_METRICS_COLUMN_BYTES);
	for (size_t i = 0; i < d->n_columns; i++) {
		const struct store_define_column *c = &d->columns[i];

		if (c->part != STORE_PART_VALUE || c->metric->kind == METRIC_HISTOGRAM ||
		    strcmp(c->metric->stream, type) != 0)
			continue;
		bits[c->column / 8] |= (uint8_t)(1U << c->column % 8);
		*ret_snapshot = c->metric->kind == METRIC_GAUGE;
		found = true;
	}
	return found;
}

int store_metrics_read_stream(struct store_metrics_stream *s, struct store_day *day,
			      const struct store_window *window, struct err *err)
{
	_cleanup_(store_dictionary_release) struct store_dictionary d = {0};
	_cleanup_free_ uint8_t *labelsets = NULL;
	struct streaming streaming = {.out = s};
	struct store_metrics_scan scan = {.fn = stream_batch, .ctx = &streaming};
	uint8_t columns[STORE_METRICS_COLUMN_BYTES];
	int r;

	if (!store_day_has_metrics(day))
		return 0;
	scan.service = s->service;
	r = s->service ? 1 : store_sqlite_find_service(day, window->service, &scan.service, err);
	if (r <= 0)
		return r;
	r = s->columns ? 0 : store_dictionary_load(&d, day, scan.service, err);
	if (r < 0 ||
	    !find_columns(s->columns ? s->columns : &d, window->type, columns, &s->snapshot))
		return r;
	r = store_sqlite_filter(day, scan.service, window, &labelsets, err);
	if (r < 0)
		return r;
	streaming.labelsets = labelsets;
	scan.columns = columns;
	store_sqlite_day_window(day, window->from_ns, window->to_ns, &scan.from_ms, &scan.to_ms);
	r = store_metrics_scan(&scan, day, err);
	buf_release(&streaming.run);
	sort_times(&s->times);
	return r < 0 ? r : 1;
}

/* --- listings */

struct edges {
	int64_t *first_ms; /* by column; -1: not seen */
	int64_t *last_ms;
	size_t n;
};

static int edge_batch(void *ctx, const struct store_metrics_batch *b)
{
	struct edges *e = ctx;

	for (size_t i = 0; i < b->n && b->column < e->n; i++) {
		int64_t ms = b->begin_ms + b->times_ms[i];

		if (isnan(b->values[i]))
			continue;
		if (e->first_ms[b->column] < 0 || ms < e->first_ms[b->column])
			e->first_ms[b->column] = ms;
		e->last_ms[b->column] = MAX(e->last_ms[b->column], ms);
	}
	return 0;
}

static bool all_met(const struct store_dictionary *d, const int64_t *edges)
{
	for (size_t i = 0; i < d->n_columns; i++)
		if (d->columns[i].metric->stream[0] && edges[d->columns[i].column] < 0)
			return false;
	return true;
}

/* Hour by hour from one end of the window, until all were seen. */
static int find_edges(struct store_metrics_scan *scan, struct store_day *day,
		      const struct store_dictionary *d, bool last, struct err *err)
{
	const struct edges *e = scan->ctx;
	struct store_metrics_scan one = *scan;
	int64_t first_hour = scan->from_ms / STORE_METRICS_HOUR_MS;
	int64_t end_hour = (scan->to_ms + STORE_METRICS_HOUR_MS - 1) / STORE_METRICS_HOUR_MS;
	int r = 0;

	for (int64_t i = 0; r == 0 && i < end_hour - first_hour; i++) {
		int64_t hour = last ? end_hour - 1 - i : first_hour + i;

		if (all_met(d, last ? e->last_ms : e->first_ms))
			break;
		one.from_ms = MAX(scan->from_ms, hour * STORE_METRICS_HOUR_MS);
		one.to_ms = MIN(scan->to_ms, (hour + 1) * STORE_METRICS_HOUR_MS);
		r = store_metrics_scan(&one, day, err);
	}
	return r;
}

/* First and last time of one stream, which may have several columns. */
static int list_stream(struct store_metrics_listing *l, struct store_day *day, struct view service,
		       const struct store_dictionary *d, const struct edges *first,
		       const struct edges *last, size_t i)
{
	const struct store_definition *m = d->columns[i].metric;
	int64_t begin = day->number * STORE_DAY_MS, first_ms = -1, last_ms = -1;

	for (size_t k = 0; k < d->n_columns; k++) {
		uint32_t column = d->columns[k].column;

		if (strcmp(d->columns[k].metric->stream, m->stream) != 0 ||
		    first->first_ms[column] < 0)
			continue;
		/* Each stream once: at its first column. */
		if (k < i)
			return 0;
		if (first_ms < 0 || first->first_ms[column] < first_ms)
			first_ms = first->first_ms[column];
		last_ms = MAX(last_ms, last->last_ms[column]);
	}
	if (first_ms < 0)
		return 0;
	return l->stream(l->ctx, service, m->stream, m->kind == METRIC_GAUGE,
			 (begin + first_ms) * 1000000, (begin + last_ms) * 1000000);
}

static void edges_release(struct edges *e)
{
	free(e->first_ms);
}

static int edges_new(struct edges *e, size_t n)
{
	e->first_ms = malloc((n + 1) * 2 * sizeof(*e->first_ms));
	if (!e->first_ms)
		return -ENOMEM;
	e->n = n;
	e->last_ms = e->first_ms + n;
	memset(e->first_ms, 0xff, n * 2 * sizeof(*e->first_ms));
	return 0;
}

static int list_service(struct store_metrics_listing *l, struct store_day *day, uint32_t service,
			struct view name, struct err *err)
{
	_cleanup_(store_dictionary_release) struct store_dictionary d = {0};
	struct store_metrics_scan scan = {.service = service, .presence = true, .fn = edge_batch};
	uint8_t columns[STORE_METRICS_COLUMN_BYTES] = {0};
	_cleanup_(edges_release) struct edges first = {0}, last = {0};
	size_t n = 0;
	int r = store_dictionary_load(&d, day, service, err);

	for (size_t i = 0; i < d.n_columns; i++) {
		n = MAX(n, d.columns[i].column + 1);
		if (d.columns[i].metric->stream[0])
			columns[d.columns[i].column / 8] |=
				(uint8_t)(1U << d.columns[i].column % 8);
	}
	if (r == 0 && (edges_new(&first, n) < 0 || edges_new(&last, n) < 0))
		r = err_oom(err);
	store_sqlite_day_window(day, l->from_ns, l->to_ns, &scan.from_ms, &scan.to_ms);
	scan.columns = columns;
	scan.ctx = &first;
	if (r == 0)
		r = find_edges(&scan, day, &d, false, err);
	scan.ctx = &last;
	if (r == 0)
		r = find_edges(&scan, day, &d, true, err);
	for (size_t i = 0; r == 0 && i < d.n_columns; i++)
		if (d.columns[i].metric->stream[0] && d.columns[i].part == STORE_PART_VALUE)
			r = list_stream(l, day, name, &d, &first, &last, i);
	return r;
}

int store_metrics_list_streams(struct store_metrics_listing *l, struct store_day *day,
			       struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = 0;

	if (store_day_has_metrics(day))
		r = store_day_query(day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);
	while (r == 0 && stmt && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		r = 0;
		if (id > 0 && id <= STORE_DAY_MAX_STREAMS)
			r = list_service(l, day, (uint32_t)id, store_day_blob(stmt, 1), err);
	}
	if (r < 0 && stmt)
		store_day_done(stmt);
	return r;
}

struct spanning {
	struct store_metrics_listing *listing;
	int64_t begin_ms;
};

static int span_batch(void *ctx, const struct store_metrics_batch *b)
{
	struct spanning *s = ctx;
	int64_t begin = s->begin_ms + b->begin_ms;

	return s->listing->labelset(s->listing->ctx, b->labelset,
				    (begin + b->times_ms[0]) * 1000000,
				    (begin + b->times_ms[b->n - 1]) * 1000000);
}

int store_metrics_list_labelsets(struct store_metrics_listing *l, struct store_day *day,
				 uint32_t service, struct err *err)
{
	struct spanning spanning = {.listing = l, .begin_ms = day->number * STORE_DAY_MS};
	struct store_metrics_scan scan = {.service = service, .fn = span_batch, .ctx = &spanning};
	int r;

	store_sqlite_day_window(day, l->from_ns, l->to_ns, &scan.from_ms, &scan.to_ms);
	r = store_metrics_scan(&scan, day, err);
	return r;
}
