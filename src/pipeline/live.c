/* src/pipeline/live.c: see live.h. */
#include "pipeline/live.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static const struct metric_point *point_find(const struct metrics *m,
					     const struct metric_point *like)
{
	for (size_t i = 0; m && i < m->len; i++) {
		const struct metric_point *p = &m->points[i];
		bool same = p->metric == like->metric;

		for (size_t k = 0; same && k < METRIC_MAX_ATTRIBUTES; k++)
			same = same_text(p->attributes[k], like->attributes[k]);
		if (same)
			return p;
	}
	return NULL;
}

static bool is_added_up(const struct metric_point *p)
{
	return p->metric->kind == METRIC_HISTOGRAM ||
	       (p->metric->kind == METRIC_COUNTER && !isnan(p->increase));
}

/* room: memory for the buckets of a histogram. */
static struct metric_point point_now(const struct live *live, const struct metric_point *p,
				     uint64_t room[METRIC_MAX_BOUNDS + 1])
{
	const struct metric_point *before = point_find(live->points, p);
	struct metric_point now = *p;

	now.increase = NAN;
	if (p->metric->kind == METRIC_COUNTER && isnan(p->value)) {
		now.increase = isnan(p->increase) ? 0 : p->increase;
		now.value = (before ? before->value : 0) + now.increase;
	}
	if (p->metric->kind == METRIC_HISTOGRAM && before) {
		for (size_t i = 0; i <= p->metric->n_bounds; i++)
			room[i] = before->buckets[i] + p->buckets[i];
		now.buckets = room;
		now.sum += before->sum;
	}
	return now;
}

/* Keeps sums that the new points lack. */
static int points_keep(const struct metrics *before, const struct metrics *new, struct metrics *to)
{
	int r = 0;

	for (size_t i = 0; r == 0 && before && i < before->len; i++) {
		const struct metric_point *p = &before->points[i];

		if (is_added_up(p) && !point_find(new, p))
			r = metrics_add(to, p);
	}
	return r;
}

/* A smaller total means that the counter restarted: its increase is unknown. */
static void point_since(struct metric_point *p, const struct metrics *before)
{
	const struct metric_point *was = point_find(before, p);

	if (p->metric->kind == METRIC_COUNTER && isnan(p->increase) && was &&
	    p->value >= was->value)
		p->increase = p->value - was->value;
}

int live_take(struct live *live, struct metrics *metrics)
{
	_cleanup_(metrics_freep) struct metrics *to = metrics_new();
	int r = to ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < metrics->len; i++) {
		uint64_t room[METRIC_MAX_BOUNDS + 1];
		struct metric_point now = point_now(live, &metrics->points[i], room);

		r = metrics_add(to, &now);
	}
	if (r == 0)
		r = points_keep(live->points, metrics, to);
	if (r < 0)
		return r;
	for (size_t i = 0; i < metrics->len; i++)
		point_since(&metrics->points[i], live->points);
	metrics_free(live->points);
	live->points = TAKE_PTR(to);
	live->silent = false;
	return 0;
}

void live_drop(struct live *live)
{
	live->silent = true;
}

void live_clear(struct live *live)
{
	metrics_free(live->points);
	*live = (struct live){};
}

int live_copy(const struct live *live, struct metrics *to)
{
	int r = 0;

	for (size_t i = 0; r == 0 && live->points && i < live->points->len; i++)
		if (!live->silent || is_added_up(&live->points->points[i]))
			r = metrics_add(to, &live->points->points[i]);
	return r;
}
