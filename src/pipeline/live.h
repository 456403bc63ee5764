/*
 * src/pipeline/live.h: the current metrics of one source and resource, for /metrics.
 *
 * Gauges, and counters whose total the source knows, have the last value reported; what the source
 * no longer reports is gone. Counters with only increases are summed here, and stay.
 */
#pragma once

#include <stdbool.h>

#include "pipeline/metrics.h"

/* Empty if zeroed. */
struct live {
	struct metrics *points; /* NULL: none. Increase NAN: the source knows the total */
	bool silent;		/* the source has failed since */
};

/*
 * Fills in the increase of counters with only a total. A first total is the baseline and has none.
 * -ENOMEM: live is unchanged.
 */
int live_take(struct live *live, struct metrics *metrics);
/* The source failed: forgets its last values, but keeps the sums. */
void live_drop(struct live *live);
void live_clear(struct live *live);
/* Adds the points to show. */
int live_copy(const struct live *live, struct metrics *to);
