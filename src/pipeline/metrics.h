/*
 * src/pipeline/metrics.h: numbers of one resource at one time.
 *
 * A point is a metric of the registry, the values of its attributes, and a number. Gauges say what
 * is now. Counters say how much there has been since the source began to count, and how much came
 * since the record before; one of the two may be unknown. A first reading has no increase: it is
 * the baseline, never a jump from 0. Histograms say how many came in each of the metric's buckets
 * since the record before.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "pipeline/registry.h"

/* Of one record: a program that has more is cut, which is counted. */
#define METRICS_MAX_POINTS 4096

struct metric_point {
	const struct metric *metric;
	const char *attributes[METRIC_MAX_ATTRIBUTES]; /* as the metric's keys; NULL: not set */
	double value;				       /* gauge, or counter's total; NAN: unknown */
	double increase;	 /* of a counter, since the record before; NAN: unknown */
	const uint64_t *buckets; /* of a histogram, metric->n_bounds + 1 of them; else NULL */
	double sum;		 /* of what is in them; NAN: unknown */
};

struct metrics {
	struct arena arena; /* texts and buckets */
	struct metric_point *points;
	size_t len;
	size_t cap;
	uint64_t lost; /* points that did not fit */
};

struct metrics *metrics_new(void); /* NULL without memory */
void metrics_free(struct metrics *metrics);
DEFINE_CLEANUP(struct metrics, metrics_free)

/* A copy of the point, its texts and buckets. -ENOMEM, or -E2BIG past the limit; both counted. */
int metrics_add(struct metrics *metrics, const struct metric_point *point);
/* The common cases, for metrics without attributes. */
int metrics_add_gauge(struct metrics *metrics, enum metric_id id, double value);
int metrics_add_counter(struct metrics *metrics, enum metric_id id, double total, double increase);
