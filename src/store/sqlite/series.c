/*
 * src/store/sqlite/series.c: totals over time, from the points of profiles and from metrics with a
 * stream name; and one function over time, from the blocks behind the points.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "store/metrics/stream.h"
#include "store/sqlite/hold.h"
#include "store/sqlite/lookup.h"
#include "store/sqlite/readings.h"
#include "store/sqlite/state.h"

#define MAX_POINTS ((size_t)1 << 20)

struct charting;

/* One curve: the totals, or what is self or total of a function. */
struct chart {
	struct charting *all;
	double *sums;
	struct store_hold hold; /* of the current day */
};

struct charting {
	struct store_window window;
	const struct store_function *function; /* NULL: totals */
	int64_t step_ns;
	size_t n;
	struct chart charts[2];
	size_t n_charts;
	uint32_t *times; /* distinct collection times of each step */
	uint8_t *seen;	 /* whether a point passed the filters */
	uint8_t *unread; /* whether one could not be read */
	bool snapshot;
	struct store_readings readings;
	/* Of the current day. */
	int64_t day_ms; /* its start */
	int64_t from_ms;
	int64_t to_ms;
	struct store_sqlite_stream stream;
	const uint8_t *bits;
	struct buf *day_times;
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
	struct chart *chart = ctx;
	size_t i = chart_step(chart->all, ms);

	if (i == chart->all->n)
		return;
	chart->all->seen[i] = 1;
	chart->sums[i] += value;
}

static bool chart_stands(const struct charting *c)
{
	return c->snapshot && c->window.stands;
}

/* A point of the window, or of a snapshot beside it: that only tells how often it is read. */
static int chart_point(struct charting *c, int64_t key, bool passes, const double *values)
{
	uint32_t ms = (uint32_t)store_day_key_ms(key), *known = (void *)c->day_times->data;
	size_t n = c->day_times->len / sizeof(ms);
	int r = 0;

	for (size_t k = 0; r == 0 && chart_stands(c) && k < c->n_charts; k++)
		r = store_hold_add(&c->charts[k].hold, ms, store_day_key_labelset(key), passes,
				   values[k]);
	if (r < 0 || ms < c->from_ms || ms >= c->to_ms)
		return r;
	if (n == 0 || known[n - 1] != ms)
		r = buf_append(c->day_times, &ms, sizeof(ms));
	for (size_t k = 0; passes && k < c->n_charts; k++)
		chart_value(&c->charts[k], ms, values[k]);
	return r;
}

/* What the function has at a point of this total. False if that could not be read. */
static bool function_values(struct charting *c, int64_t key, int64_t total, double *ret_values)
{
	const struct store_block_reading *reading = store_readings_get(&c->readings, key);
	int64_t ms = store_day_key_ms(key);
	size_t step = chart_step(c, ms);

	ret_values[0] = reading ? (double)reading->self : 0;
	ret_values[1] = reading ? (double)reading->total : 0;
	/* Nothing is stored behind a point of an empty profile. */
	if (reading || total == 0)
		return true;
	if (ms >= c->from_ms && ms < c->to_ms && step < c->n)
		c->unread[step] = 1;
	return false;
}

static int chart_range(struct charting *c, struct store_day *day, int64_t from_ms, int64_t to_ms,
		       struct err *err)
{
	const int64_t range[] = {store_day_key(c->stream.id, from_ms, 0),
				 store_day_key(c->stream.id, to_ms, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_POINTS, range, 2, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		bool passes = store_sqlite_passes(c->bits, store_day_key_labelset(key));
		int64_t total = sqlite3_column_int64(stmt, 1);
		double values[2] = {(double)total};

		if (c->function && passes)
			passes = function_values(c, key, total, values);
		r = chart_point(c, key, passes, values);
		if (r < 0) {
			store_day_done(stmt);
			return err_oom(err);
		}
	}
	return r;
}

/* By the hour, as it is packed. */
static int chart_function(struct charting *c, struct store_day *day, int64_t from_ms, int64_t to_ms,
			  struct err *err)
{
	int r = from_ms < to_ms ? store_readings_begin(&c->readings, day, c->stream.service,
						       c->function, err)
				: 0;

	while (r == 0 && from_ms < to_ms) {
		int64_t hour = from_ms / STORE_BLOCK_HOUR_MS;
		int64_t end = MIN((hour + 1) * STORE_BLOCK_HOUR_MS, to_ms);

		r = store_readings_hour(&c->readings, day, c->stream.id, c->bits,
					(unsigned int)hour, err);
		if (r == 0)
			r = chart_range(c, day, from_ms, end, err);
		from_ms = end;
	}
	return r;
}

static int chart_stream(struct charting *c, struct store_day *day, struct err *err)
{
	int64_t margin = chart_stands(c) ? STORE_HOLD_MARGIN_MS : 0;
	int64_t from_ms, to_ms;
	int r;

	store_sqlite_day_window(day, c->window.from_ns, c->window.to_ns, &c->from_ms, &c->to_ms);
	from_ms = MAX(c->from_ms - margin, 0);
	to_ms = MIN(c->to_ms + margin, STORE_DAY_MS);
	for (size_t k = 0; k < c->n_charts; k++) {
		c->charts[k].hold.from_ms = c->from_ms;
		c->charts[k].hold.to_ms = c->to_ms;
	}
	if (c->function)
		r = chart_function(c, day, from_ms, to_ms, err);
	else
		r = chart_range(c, day, from_ms, to_ms, err);
	for (size_t k = 0; k < c->n_charts; k++) {
		if (r == 0 && store_hold_finish(&c->charts[k].hold, chart_value, &c->charts[k]) < 0)
			r = err_oom(err);
		store_hold_release(&c->charts[k].hold);
		c->charts[k].hold = (struct store_hold){0};
	}
	return r;
}

static int chart_profiles(struct charting *c, struct store_day *day,
			  const struct store_lookup *names, struct err *err)
{
	_cleanup_free_ uint8_t *bits = NULL;
	int r;

	if (!store_lookup_stream(names, c->window.service, c->window.type, &c->stream))
		return 0;
	c->snapshot = c->stream.snapshot;
	r = store_sqlite_filter(day, c->stream.service, &c->window, &bits, err);
	c->bits = bits;
	return r < 0 ? r : chart_stream(c, day, err);
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

/* A metric has no stacks, and no functions. */
static int chart_metrics(struct charting *c, struct store_day *day, struct store_lookup *names,
			 struct store_metrics_stream *metrics, struct err *err)
{
	int r = c->function ? 0 : store_lookup_columns(names, day, c->window.service, err);

	if (r <= 0)
		return r;
	metrics->service = names->columns_of;
	metrics->columns = &names->columns;
	return store_metrics_read_stream(metrics, day, &c->window, err);
}

static int chart_day(struct charting *c, struct store_day *day, struct store_lookup *names,
		     struct err *err)
{
	_cleanup_(buf_release) struct buf times = {0};
	struct store_metrics_stream metrics = {.fn = chart_value, .ctx = &c->charts[0]};
	int r;

	c->day_ms = day->number * STORE_DAY_MS;
	c->day_times = &times;
	r = chart_profiles(c, day, names, err);
	if (r == 0)
		r = chart_metrics(c, day, names, &metrics, err);
	if (r > 0)
		c->snapshot = metrics.snapshot;
	if (r >= 0)
		count_times(c, &times, &metrics.times);
	buf_release(&metrics.times);
	return MIN(r, 0);
}

/* Many of them, so that a day's names are looked up once. */
struct chartings {
	struct charting *items;
	size_t n;
};

static int chart_days(void *ctx, struct store_day *day, struct err *err)
{
	_cleanup_(store_lookup_release) struct store_lookup names = {0};
	struct chartings *all = ctx;
	int r = store_lookup_load(&names, day, err);

	for (size_t i = 0; r == 0 && i < all->n; i++)
		r = chart_day(&all->items[i], day, &names, err);
	return r;
}

static void charting_release(struct charting *c)
{
	free(c->times);
	free(c->seen);
	for (size_t k = 0; k < ARRAY_SIZE(c->charts); k++)
		free(c->charts[k].sums);
	store_readings_release(&c->readings);
}

static void chartings_release(struct chartings *all)
{
	for (size_t i = 0; i < all->n; i++)
		charting_release(&all->items[i]);
	free(all->items);
}

static int charting_begin(struct charting *c, struct err *err)
{
	if (c->n > MAX_POINTS)
		return err_set(err, -E2BIG, "too many points: %zu, at most %zu", c->n, MAX_POINTS);
	c->times = calloc(c->n + 1, sizeof(*c->times));
	c->seen = calloc(c->n + 1, sizeof(*c->seen));
	if (!c->times || !c->seen)
		return err_oom(err);
	for (size_t k = 0; k < c->n_charts; k++) {
		c->charts[k].all = c;
		c->charts[k].sums = calloc(c->n + 1, sizeof(double));
		if (!c->charts[k].sums)
			return err_oom(err);
	}
	return 0;
}

static void put_points(const struct charting *c, size_t chart, double *points)
{
	for (size_t i = 0; i < c->n; i++) {
		points[i] = c->seen[i] ? c->charts[chart].sums[i] : (double)NAN;
		if (c->seen[i] && c->snapshot)
			points[i] /= c->times[i];
	}
}

int store_sqlite_series(struct store *store, const struct store_window *window,
			const struct store_series_request *requests, size_t n, struct err *err)
{
	_cleanup_(chartings_release) struct chartings all = {calloc(n + 1, sizeof(*all.items)), n};
	const struct store_sqlite_span span = {window->from_ns, window->to_ns, window->damaged};
	int r = all.items ? 0 : err_oom(err);

	if (r < 0)
		all.n = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct charting *c = &all.items[i];

		c->window = *window;
		c->window.service = requests[i].service;
		c->window.type = requests[i].type;
		c->step_ns = requests[i].step_ns;
		c->n = requests[i].n_points;
		c->n_charts = 1;
		r = charting_begin(c, err);
	}
	if (r == 0)
		r = store_sqlite_each_day(store_sqlite(store), &span, chart_days, &all, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		put_points(&all.items[i], 0, requests[i].points);
	return r;
}

int store_sqlite_curve(struct store *store, const struct store_window *window,
		       const struct store_function *function, const struct store_curve *curve,
		       struct err *err)
{
	_cleanup_(charting_release) struct charting c = {
		.window = *window,
		.function = function,
		.step_ns = curve->step_ns,
		.n = curve->n,
		.n_charts = 2,
		.unread = curve->unread,
	};
	const struct store_sqlite_span span = {window->from_ns, window->to_ns, window->damaged};
	struct chartings one = {&c, 1};
	int r = charting_begin(&c, err);

	for (size_t i = 0; i < curve->n; i++)
		curve->unread[i] = 0;
	if (r == 0)
		r = store_sqlite_each_day(store_sqlite(store), &span, chart_days, &one, err);
	if (r < 0)
		return r;
	put_points(&c, 0, curve->self);
	put_points(&c, 1, curve->total);
	/* A part of it would look like less than there was. */
	for (size_t i = 0; i < curve->n; i++)
		if (curve->unread[i])
			curve->self[i] = curve->total[i] = NAN;
	return 0;
}
