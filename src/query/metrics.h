/*
 * src/query/metrics.h: stored metrics, put into groups.
 *
 * Series with the same values of the group's keys become one: gauges and increases are added up, of
 * the smallest and largest values the smallest and largest are kept. A key is an attribute of the
 * metric or else a label; a series without it is in the group of those that lack it.
 */
#pragma once

#include "store/store.h"

#define QUERY_MAX_KEYS 8

struct query_group {
	struct store_label labels[QUERY_MAX_KEYS];
	size_t n_labels;
	/* As in struct store_series, to which it points. */
	const double *points;
	const double *sums;
	uint32_t width;
	struct store_series *series; /* the first of the group */
};
struct query_metrics {
	struct query_group *groups;
	size_t len;
	struct store_metric_answer answer; /* what the groups point into */
};

/* No keys: one group; apart: every series is one, and the keys do not count. */
struct query_grouping {
	const char *keys[QUERY_MAX_KEYS];
	size_t n_keys;
	bool apart;
};
int query_metrics(struct store *store, const struct store_metric_query *query,
		  const struct query_grouping *grouping, struct query_metrics *ret_metrics,
		  struct err *err);
void query_metrics_release(struct query_metrics *metrics);
