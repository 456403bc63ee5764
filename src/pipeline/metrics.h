/*
 * src/pipeline/metrics.h: numbers of one resource at one time.
 *
 * A point is a metric of the registry, the values of its attributes, and a number. A gauge is the
 * current value. A counter has its total since the source started counting, and its increase since
 * the previous record; either may be unknown. A first reading has no increase: it is the baseline,
 * never a jump from 0. A histogram has the counts per bucket since the previous record.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "pipeline/registry/registry.h"

/* Of one record; more are dropped and counted. */
#define METRICS_MAX_POINTS 4096

struct metric_point {
	const struct metric *metric;
	const char *attributes[METRIC_MAX_ATTRIBUTES]; /* in the order of the metric's keys; NULL:
							  not set */
	double value;		 /* of a gauge, or a counter's total; NAN: unknown */
	double increase;	 /* of a counter since the previous record; NAN: unknown */
	const uint64_t *buckets; /* of a histogram: metric->n_bounds + 1; otherwise NULL */
	double sum;		 /* of the values in them; NAN: unknown */
};

struct metrics {
	struct arena arena; /* texts and buckets */
	struct metric_point *points;
	size_t len;
	size_t cap;
	uint64_t lost; /* points dropped */
};

struct metrics *metrics_new(void); /* NULL if out of memory */
void metrics_free(struct metrics *metrics);
DEFINE_CLEANUP(struct metrics, metrics_free)

/*
 * Copies the point with its texts and buckets. -ENOMEM, or -E2BIG over the limit; both are counted.
 */
int metrics_add(struct metrics *metrics, const struct metric_point *point);
/* For metrics without attributes. */
int metrics_add_gauge(struct metrics *metrics, enum metric_id id, double value);
int metrics_add_counter(struct metrics *metrics, enum metric_id id, double total, double increase);
