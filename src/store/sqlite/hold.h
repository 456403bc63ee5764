/*
 * src/store/sqlite/hold.h: for how long a snapshot stands.
 *
 * All processes of a stream are collected at the same times, but one that is costly to read only at
 * some of them. In between its last snapshot stands; a sum over processes would fall otherwise, and
 * an average over all times would count it as nothing at most of them. A process that has just
 * begun, or has ended, counts at the times of its life.
 *
 *   times      0  1  2  3  4  5  6  7  8
 *   A          5  5  5  5                   ends: nothing at 4 to 8
 *   B             9        9        9       every third: 9 everywhere
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"

/* Readings this long before and after a window tell how often a process is read. */
#define STORE_HOLD_MARGIN_MS ((int64_t)3600 * 1000)

struct store_hold_set {
	uint32_t labelset;
	uint32_t readings; /* in the window */
	uint32_t held;	   /* further times of the window at which one of them stands */
	/* The last reading, its distance from the one before, and that one's: indexes of times. */
	uint32_t last;
	uint32_t gap;
	uint32_t gap_before;
	double value;
};

/* Empty if zeroed. One stream and one day. */
struct store_hold {
	int64_t from_ms; /* the window, in the day */
	int64_t to_ms;
	struct buf times; /* uint32_t: of all readings, in ms of the day */
	struct buf sets;  /* struct store_hold_set */
	struct buf fills; /* what stands where there is no reading */
	struct map index; /* label set to its place in sets */
};

void store_hold_release(struct store_hold *h);
/* Readings in order of time, also of label sets that are not wanted: they have times, too. */
int store_hold_add(struct store_hold *h, uint32_t ms, uint32_t labelset, bool wanted, double value);
/*
 * After the last reading: calls fn, if given, for each time of the window and each snapshot that
 * stands there without having been read then.
 */
int store_hold_finish(struct store_hold *h, void (*fn)(void *ctx, int64_t ms, double value),
		      void *ctx);
/* How many times there are in the window. */
uint32_t store_hold_times(const struct store_hold *h);
