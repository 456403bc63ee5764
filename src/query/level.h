/*
 * src/query/level.h: gauges of processes that are read at different rates, ready to be summed.
 *
 * A value stands until the next reading is due, also one from before the window. A process counts
 * for the time of its life, not for the number of its readings:
 *
 *   time       0  1  2  3  4  5  6  7
 *   A          5  5  5  5                  ends: half of the time, an average of 2.5
 *   B       9        9        9            every third: 9 all the time
 */
#pragma once

#include "store/store.h"

/*
 * Changes points of the series, and adds those whose last value stands from before the window.
 * before: what the same series had until then; it must live as long as the answer.
 */
int query_level(struct store *store, const struct store_metric_query *query,
		struct store_metric_answer *answer, struct store_metric_answer *ret_before,
		struct err *err);
