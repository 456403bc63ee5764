/*
 * src/store/sqlite/series.c: totals over time, from the points of profiles and from metrics with a
 * stream name.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/metrics/define.h"
#include "store/metrics/stream.h"
#include "store/sqlite/hold.h"
#include "store/sqlite/state.h"

#define MAX_POINTS ((size_t)1 << 20)

struct charting {
	struct store_window window;
	int64_t step_ns;
	double *sums;
	size_t n;
	uint32_t *times; /* distinct collection times of each step */
	uint8_t *seen;	 /* whether a point passed the filters */
	bool snapshot;
	int64_t day_ms; /* start of the current day */
};

/* Many of them: what the day calls things is looked up once. */
struct charts {
	struct charting *items;
	size_t n;
	struct store_day *day;
	struct map services;		 /* hash of the name, to its id */
	struct map streams;		 /* hash of service and type, to id, service and mode */
	struct store_dictionary columns; /* of metrics, of the service below */
	uint32_t columns_of;
};

/* The step of a time of the day; n if none. */
static size_t chart_step(const struct charting *c, int64_t ms)
{
	int64_t ns = (c->day_ms + ms) * 1000000;
	/* Unsigned: the window may start before 1970. */
	uint64_t i = ((uint64_t)ns - (uint64_t)c->window.from_ns) / (uint64_t)c->step_ns;

	return MIN(i, c->n);
}

static void chart_value(void *ctx, int64_t ms, double value)
{
	struct charting *c = ctx;
	size_t i = chart_step(c, ms);

	if (i == c->n)
		return;
	c->seen[i] = 1;
	c->sums[i] += value;
}

/* A point of the window, or of a snapshot beside it: that only tells how often it is read. */
static int chart_point(struct charting *c, struct store_hold *hold, int64_t key, bool passes,
		       double value, struct buf *times)
{
	uint32_t ms = (uint32_t)store_day_key_ms(key), *known = (void *)times->data;
	size_t n = times->len / sizeof(ms);
	int r = 0;

	if (c->snapshot && c->window.stands)
		r = store_hold_add(hold, ms, (uint32_t)store_day_key_labelset(key), passes, value);
	if (r < 0 || ms < hold->from_ms || ms >= hold->to_ms)
		return r;
	if (n == 0 || known[n - 1] != ms)
		r = buf_append(times, &ms, sizeof(ms));
	if (passes)
		chart_value(c, ms, value);
	return r;
}

static int chart_points(struct charting *c, struct store_day *day,
			const struct store_sqlite_stream *stream, const uint8_t *bits,
			struct buf *times, struct err *err)
{
	_cleanup_(store_hold_release) struct store_hold hold = {0};
	int64_t margin = c->snapshot && c->window.stands ? STORE_HOLD_MARGIN_MS : 0;
	sqlite3_stmt *stmt = NULL;
	int r;

	store_sqlite_day_window(day, c->window.from_ns, c->window.to_ns, &hold.from_ms,
				&hold.to_ms);
	r = store_day_query(
		day, STORE_DAY_POINTS,
		(const int64_t[]){
			store_day_key(stream->id, MAX(hold.from_ms - margin, 0), 0),
			store_day_key(stream->id, MIN(hold.to_ms + margin, STORE_DAY_MS), 0)},
		2, &stmt, err);
	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);

		r = chart_point(c, &hold, key,
				store_sqlite_passes(bits, store_day_key_labelset(key)),
				(double)sqlite3_column_int64(stmt, 1), times);
	}
	return r < 0 ? r : store_hold_finish(&hold, chart_value, c);
}

/* --- names */

static uint64_t name_hash(struct view service, struct view type)
{
	return hash_mix(hash_bytes(service.data, service.len) +
			hash_mix(hash_bytes(type.data, type.len)));
}

static int load_services(struct charts *all, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(all->day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(all->day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		struct view name = store_day_blob(stmt, 1);

		r = 0;
		if (id <= 0 || id > STORE_DAY_MAX_STREAMS)
			store_day_damaged(all->day, STORE_DAY_SERVICES, id);
		else
			r = map_put(&all->services, hash_bytes(name.data, name.len), (uint64_t)id);
	}
	return r;
}

static int load_streams(struct charts *all, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(all->day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(all->day, stmt, err)) > 0) {
		uint64_t id = (uint64_t)sqlite3_column_int64(stmt, 0);
		uint64_t service = (uint64_t)sqlite3_column_int64(stmt, 1) & 0xffff;
		uint64_t snapshot = sqlite3_column_int(stmt, 3) != 0;

		r = 0;
		if (id > STORE_DAY_MAX_STREAMS)
			store_day_damaged(all->day, STORE_DAY_STREAMS, (int64_t)id);
		else
			r = map_put(&all->streams,
				    name_hash(store_day_blob(stmt, 4), store_day_blob(stmt, 2)),
				    id | service << 16 | snapshot << 32);
	}
	return r;
}

static void forget_names(struct charts *all)
{
	map_release(&all->services);
	map_release(&all->streams);
	store_dictionary_release(&all->columns);
	all->columns = (struct store_dictionary){0};
	all->columns_of = 0;
}

static bool find_stream(const struct charts *all, const struct store_window *w,
			struct store_sqlite_stream *ret)
{
	uint64_t word;

	if (!map_get(&all->streams, name_hash(view_str(w->service), view_str(w->type)), &word))
		return false;
	*ret = (struct store_sqlite_stream){
		.id = word & 0xffff, .service = word >> 16 & 0xffff, .snapshot = word >> 32};
	return true;
}

/* The columns of a service's metrics; streams of one service come together. */
static int load_columns(struct charts *all, const char *service, struct err *err)
{
	uint64_t id;
	int r;

	if (!store_day_has_metrics(all->day) ||
	    !map_get(&all->services, hash_bytes(service, strlen(service)), &id))
		return 0;
	if (id == all->columns_of)
		return 1;
	store_dictionary_release(&all->columns);
	all->columns = (struct store_dictionary){0};
	all->columns_of = 0;
	r = store_dictionary_load(&all->columns, all->day, (uint32_t)id, err);
	all->columns_of = r < 0 ? 0 : (uint32_t)id;
	return r < 0 ? r : 1;
}

/* --- days */

static int chart_profiles(struct charts *all, struct charting *c, struct buf *times,
			  struct err *err)
{
	_cleanup_free_ uint8_t *bits = NULL;
	struct store_day *day = all->day;
	struct store_sqlite_stream stream;
	int r;

	if (!find_stream(all, &c->window, &stream))
		return 0;
	c->snapshot = stream.snapshot;
	r = store_sqlite_filter(day, stream.service, &c->window, &bits, err);
	return r < 0 ? r : chart_points(c, day, &stream, bits, times, err);
}

/* Both lists are sorted; a time in both counts once. */
static void count_times(struct charting *c, const struct buf *a, const struct buf *b)
{
	const uint32_t *x = (const void *)a->data, *y = (const void *)b->data;
	size_t n_x = a->len / sizeof(*x), n_y = b->len / sizeof(*y);

	for (size_t i = 0, k = 0; i < n_x || k < n_y;) {
		uint32_t ms = k == n_y || (i < n_x && x[i] <= y[k]) ? x[i] : y[k];
		size_t step = chart_step(c, ms);

		i += i < n_x && x[i] == ms;
		k += k < n_y && y[k] == ms;
		if (step < c->n)
			c->times[step]++;
	}
}

static int chart_metrics(struct charts *all, struct charting *c,
			 struct store_metrics_stream *metrics, struct err *err)
{
	int r = load_columns(all, c->window.service, err);

	if (r <= 0)
		return r;
	metrics->service = all->columns_of;
	metrics->columns = &all->columns;
	return store_metrics_read_stream(metrics, all->day, &c->window, err);
}

static int chart_day(struct charts *all, struct charting *c, struct err *err)
{
	_cleanup_(buf_release) struct buf times = {0};
	struct store_metrics_stream metrics = {.fn = chart_value, .ctx = c};
	int r;

	c->day_ms = all->day->number * STORE_DAY_MS;
	r = chart_profiles(all, c, &times, err);
	if (r == 0)
		r = chart_metrics(all, c, &metrics, err);
	if (r > 0)
		c->snapshot = metrics.snapshot;
	if (r >= 0)
		count_times(c, &times, &metrics.times);
	buf_release(&metrics.times);
	return MIN(r, 0);
}

static int chart_all(void *ctx, struct store_day *day, struct err *err)
{
	struct charts *all = ctx;
	int r;

	all->day = day;
	r = load_streams(all, err);
	if (r == 0)
		r = load_services(all, err);
	for (size_t i = 0; r == 0 && i < all->n; i++)
		r = chart_day(all, &all->items[i], err);
	forget_names(all);
	return r;
}

static void charts_release(struct charts *all)
{
	forget_names(all);
	for (size_t i = 0; i < all->n && all->items; i++) {
		free(all->items[i].sums);
		free(all->items[i].times);
		free(all->items[i].seen);
	}
	free(all->items);
}

static int charts_add(struct charts *all, const struct store_window *window,
		      const struct store_series_request *rq)
{
	struct charting *c = &all->items[all->n++];

	*c = (struct charting){.window = *window, .step_ns = rq->step_ns, .n = rq->n_points};
	c->window.service = rq->service;
	c->window.type = rq->type;
	c->times = calloc(rq->n_points + 1, sizeof(*c->times));
	c->seen = calloc(rq->n_points + 1, sizeof(*c->seen));
	c->sums = calloc(rq->n_points + 1, sizeof(*c->sums));
	return c->times && c->seen && c->sums ? 0 : -ENOMEM;
}

static void put_points(const struct charting *c, double *points)
{
	for (size_t i = 0; i < c->n; i++) {
		points[i] = c->seen[i] ? c->sums[i] : (double)NAN;
		if (c->seen[i] && c->snapshot)
			points[i] /= c->times[i];
	}
}

int store_sqlite_series(struct store *store, const struct store_window *window,
			const struct store_series_request *requests, size_t n, struct err *err)
{
	_cleanup_(charts_release) struct charts all = {.items = calloc(n + 1, sizeof(*all.items))};
	const struct store_sqlite_span span = {window->from_ns, window->to_ns, window->damaged};
	int r = all.items ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (requests[i].n_points > MAX_POINTS)
			return err_set(err, -E2BIG, "too many points: %zu, at most %zu",
				       requests[i].n_points, MAX_POINTS);
		r = charts_add(&all, window, &requests[i]);
	}
	if (r < 0)
		return err_oom(err);
	r = store_sqlite_each_day(store_sqlite(store), &span, chart_all, &all, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		put_points(&all.items[i], requests[i].points);
	return r;
}
