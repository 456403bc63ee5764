/*
 * src/query/metrics.h: stored metrics, grouped.
 *
 * Series with the same values of the group's keys become one: gauges and increases are summed; for
 * min and max, the smallest and largest value is kept. A gauge that is read at longer intervals has
 * its last value in between, and one of a process that lived for a part of a step counts for that
 * part. A key is an attribute of the metric, or else a label; series without it form their own
 * group.
 */
#pragma once

#include "store/store.h"

#define QUERY_MAX_KEYS 8

struct query_group {
	struct label labels[QUERY_MAX_KEYS];
	size_t n_labels;
	/* As in struct store_series; points into it. */
	const double *points;
	const double *sums;
	uint32_t width;
	struct store_series *series; /* the first of the group */
};
struct query_metrics {
	struct query_group *groups;
	size_t len;
	struct store_metric_answer answer; /* storage of the groups */
	struct store_metric_answer before; /* and of those that stand from before the window */
};

/* No keys: one group. apart: every series is its own group; keys are ignored. */
struct query_grouping {
	const char *keys[QUERY_MAX_KEYS];
	size_t n_keys;
	bool apart;
};
int query_metrics(struct store *store, const struct store_metric_query *query,
		  const struct query_grouping *grouping, struct query_metrics *ret_metrics,
		  struct err *err);
void query_metrics_release(struct query_metrics *metrics);
