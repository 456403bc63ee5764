/* src/store/series.c: totals over time, from the points alone. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "store/sqlite_impl.h"

#define MAX_POINTS ((size_t)1 << 20)

struct charting {
	const struct store_window *window;
	int64_t step_ns;
	double *sums;
	size_t n;
	uint32_t *times; /* distinct collection times of each step */
	uint8_t *seen;	 /* whether a point passed the filters */
	bool snapshot;
};

static int chart_points(struct charting *c, struct day *day, const struct sqlite_stream *stream,
			const uint8_t *bits, struct err *err)
{
	int64_t from_ms, to_ms, last = -1;
	sqlite3_stmt *stmt = NULL;
	int r;

	sqlite_day_window(day, c->window->from_ns, c->window->to_ns, &from_ms, &to_ms);
	r = day_query(
		day, DAY_POINTS,
		(const int64_t[]){day_key(stream->id, from_ms, 0), day_key(stream->id, to_ms, 0)},
		2, &stmt, err);
	if (r < 0)
		return r;
	while ((r = day_next(day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		int64_t ns = (day->number * DAY_MS + day_key_ms(key)) * 1000000;
		/* Unsigned: the window may begin before 1970. */
		uint64_t i = ((uint64_t)ns - (uint64_t)c->window->from_ns) / (uint64_t)c->step_ns;

		if (i >= c->n)
			continue;
		c->times[i] += day_key_ms(key) != last;
		last = day_key_ms(key);
		if (!sqlite_passes(bits, day_key_labelset(key)))
			continue;
		c->seen[i] = 1;
		c->sums[i] += (double)sqlite3_column_int64(stmt, 1);
	}
	return r;
}

static int chart_day(void *ctx, struct day *day, struct err *err)
{
	_cleanup_free_ uint8_t *bits = NULL;
	struct charting *c = ctx;
	struct sqlite_stream stream;
	int r = sqlite_find_stream(day, c->window->service, c->window->type, &stream, err);

	if (r <= 0)
		return r;
	c->snapshot = stream.snapshot;
	r = sqlite_filter(day, stream.service, c->window, &bits, err);
	return r < 0 ? r : chart_points(c, day, &stream, bits, err);
}

int sqlite_series(struct store *store, const struct store_window *window, int64_t step_ns,
		  double *points, size_t n_points, struct err *err)
{
	_cleanup_free_ uint32_t *times = NULL;
	_cleanup_free_ uint8_t *seen = NULL;
	_cleanup_free_ double *sums = NULL;
	struct charting c = {.window = window, .step_ns = step_ns, .n = n_points};
	int r;

	if (n_points > MAX_POINTS)
		return err_set(err, -E2BIG, "%zu points are too many; %zu at most", n_points,
			       MAX_POINTS);
	c.times = times = calloc(n_points + 1, sizeof(*times));
	c.seen = seen = calloc(n_points + 1, sizeof(*seen));
	c.sums = sums = calloc(n_points + 1, sizeof(*sums));
	if (!times || !seen || !sums)
		return err_oom(err);
	r = sqlite_each_day(store_sqlite(store), window->from_ns, window->to_ns, chart_day, &c,
			    err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_points; i++) {
		points[i] = seen[i] ? sums[i] : (double)NAN;
		if (seen[i] && c.snapshot)
			points[i] /= times[i];
	}
	return 0;
}
