/* src/pipeline/metrics.c: see metrics.h. */
#include "pipeline/metrics.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Texts and buckets of one record: far more than needed. */
#define METRICS_MAX_BYTES ((size_t)4 << 20)

struct metrics *metrics_new(void)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (metrics)
		metrics->arena.max = METRICS_MAX_BYTES;
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	arena_release(&metrics->arena);
	free(metrics->points);
	free(metrics);
}

static int metrics_reserve(struct metrics *metrics)
{
	size_t cap = metrics->cap ? metrics->cap * 2 : 8;
	struct metric_point *points;

	if (metrics->len == METRICS_MAX_POINTS)
		return -E2BIG;
	if (metrics->len < metrics->cap)
		return 0;
	points = reallocarray(metrics->points, cap, sizeof(*points));
	if (!points)
		return -ENOMEM;
	metrics->points = points;
	metrics->cap = cap;
	return 0;
}

/* Replaces what the point borrows with copies. */
static int point_own(struct metric_point *point, struct arena *arena)
{
	const struct metric *metric = point->metric;

	for (size_t i = 0; i < METRIC_MAX_ATTRIBUTES; i++) {
		const char *value = metric->attributes[i] ? point->attributes[i] : NULL;

		point->attributes[i] = value ? arena_dup(arena, value, strlen(value) + 1) : NULL;
		if (value && !point->attributes[i])
			return -ENOMEM;
	}
	if (metric->kind != METRIC_HISTOGRAM)
		point->buckets = NULL;
	if (point->buckets) {
		point->buckets = arena_dup(arena, point->buckets,
					   (metric->n_bounds + 1) * sizeof(*point->buckets));
		if (!point->buckets)
			return -ENOMEM;
	}
	return 0;
}

int metrics_add(struct metrics *metrics, const struct metric_point *point)
{
	struct metric_point own = *point;
	int r = metrics_reserve(metrics);

	if (r == 0)
		r = point_own(&own, &metrics->arena);
	if (r < 0) {
		metrics->lost++;
		return r;
	}
	metrics->points[metrics->len++] = own;
	return 0;
}

int metrics_add_gauge(struct metrics *metrics, enum metric_id id, double value)
{
	return metrics_add(metrics, &(struct metric_point){.metric = &registry_metrics[id],
							   .value = value,
							   .increase = NAN,
							   .sum = NAN});
}

int metrics_add_counter(struct metrics *metrics, enum metric_id id, double total, double increase)
{
	return metrics_add(metrics, &(struct metric_point){.metric = &registry_metrics[id],
							   .value = total,
							   .increase = increase,
							   .sum = NAN});
}
