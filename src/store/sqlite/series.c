/*
 * src/store/sqlite/series.c: totals over time, from the points of profiles and from metrics with a
 * stream name.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "store/metrics/stream.h"
#include "store/sqlite/hold.h"
#include "store/sqlite/state.h"

#define MAX_POINTS ((size_t)1 << 20)

struct charting {
	const struct store_window *window;
	int64_t step_ns;
	double *sums;
	size_t n;
	uint32_t *times; /* distinct collection times of each step */
	uint8_t *seen;	 /* whether a point passed the filters */
	bool snapshot;
	int64_t day_ms; /* start of the current day */
};

/* The step of a time of the day; n if none. */
static size_t chart_step(const struct charting *c, int64_t ms)
{
	int64_t ns = (c->day_ms + ms) * 1000000;
	/* Unsigned: the window may start before 1970. */
	uint64_t i = ((uint64_t)ns - (uint64_t)c->window->from_ns) / (uint64_t)c->step_ns;

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

	if (c->snapshot && c->window->stands)
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
	int64_t margin = c->snapshot && c->window->stands ? STORE_HOLD_MARGIN_MS : 0;
	sqlite3_stmt *stmt = NULL;
	int r;

	store_sqlite_day_window(day, c->window->from_ns, c->window->to_ns, &hold.from_ms,
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

static int chart_profiles(struct charting *c, struct store_day *day, struct buf *times,
			  struct err *err)
{
	_cleanup_free_ uint8_t *bits = NULL;
	struct store_sqlite_stream stream;
	int r = store_sqlite_find_stream(day, c->window->service, c->window->type, &stream, err);

	if (r <= 0)
		return r;
	c->snapshot = stream.snapshot;
	r = store_sqlite_filter(day, stream.service, c->window, &bits, err);
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

static int chart_day(void *ctx, struct store_day *day, struct err *err)
{
	_cleanup_(buf_release) struct buf times = {0};
	struct charting *c = ctx;
	struct store_metrics_stream metrics = {.fn = chart_value, .ctx = c};
	int r;

	c->day_ms = day->number * STORE_DAY_MS;
	r = chart_profiles(c, day, &times, err);
	if (r == 0)
		r = store_metrics_read_stream(&metrics, day, c->window, err);
	if (r > 0)
		c->snapshot = metrics.snapshot;
	if (r >= 0)
		count_times(c, &times, &metrics.times);
	buf_release(&metrics.times);
	return MIN(r, 0);
}

int store_sqlite_series(struct store *store, const struct store_window *window, int64_t step_ns,
			double *points, size_t n_points, struct err *err)
{
	_cleanup_free_ uint32_t *times = NULL;
	_cleanup_free_ uint8_t *seen = NULL;
	_cleanup_free_ double *sums = NULL;
	const struct store_sqlite_span span = {window->from_ns, window->to_ns, window->damaged};
	struct charting c = {.window = window, .step_ns = step_ns, .n = n_points};
	int r;

	if (n_points > MAX_POINTS)
		return err_set(err, -E2BIG, "too many points: %zu, at most %zu", n_points,
			       MAX_POINTS);
	c.times = times = calloc(n_points + 1, sizeof(*times));
	c.seen = seen = calloc(n_points + 1, sizeof(*seen));
	c.sums = sums = calloc(n_points + 1, sizeof(*sums));
	if (!times || !seen || !sums)
		return err_oom(err);
	r = store_sqlite_each_day(store_sqlite(store), &span, chart_day, &c, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_points; i++) {
		points[i] = seen[i] ? sums[i] : (double)NAN;
		if (seen[i] && c.snapshot)
			points[i] /= times[i];
	}
	return 0;
}
