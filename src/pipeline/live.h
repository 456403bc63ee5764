/*
 * src/pipeline/live.h: what one source says of one resource now, for /metrics.
 *
 * Gauges, and counters whose total the source knows, are as it said last: what it leaves out is no
 * more. Counters of which only increases are known are added up here, and stay.
 */
#pragma once

#include <stdbool.h>

#include "pipeline/metrics.h"

/* A zeroed one is empty. */
struct live {
	struct metrics *points; /* NULL: none. An increase of NAN: the source knows the total */
	bool silent;		/* the source failed since */
};

/*
 * Counters of which only the total is known get their increase since the last time; the first has
 * none: it is the baseline. -ENOMEM: then live is as it was.
 */
int live_take(struct live *live, struct metrics *metrics);
/* The source failed: what it was is not what it is. What was added up stays. */
void live_drop(struct live *live);
void live_clear(struct live *live);
/* Adds what is to be shown. */
int live_copy(const struct live *live, struct metrics *to);
