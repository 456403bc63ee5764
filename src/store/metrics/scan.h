/*
 * src/store/metrics/scan.h: goes over the stored numbers of a service within a day, column by
 * column, hour by hour, label set by label set. A damaged block is a gap, and counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/codec.h"
#include "store/day.h"
#include "store/metrics/damage.h"

/* Numbers of one series: width rows of n, stride apart; NAN where there is none. */
struct metrics_batch {
	uint32_t labelset;
	uint32_t column;
	uint32_t width;
	uint64_t times; /* batches with the same number have the same times; 0: none has */
	const uint32_t *times_ms; /* after begin_ms, ascending */
	int64_t begin_ms;	  /* in the day */
	size_t n;
	const double *values;
	size_t stride;
};

struct metrics_scan {
	uint32_t service;
	int64_t from_ms; /* in the day */
	int64_t to_ms;
	const uint8_t *labelsets; /* bits of those that are wanted; NULL: all */
	/* Bits of those that are wanted. NULL: only who was read when, in batches without values.
	 */
	const uint8_t *columns;
	bool presence; /* values need not be read: 0 where there is one */
	/* Below 0 ends the scan with it, above 0 without an error. */
	int (*fn)(void *ctx, const struct metrics_batch *batch);
	void *ctx;
	struct damage *damage;
};

#define METRICS_COLUMN_BYTES 8192U /* of the bits of all columns */

/* Past hours first, then readings. 1 when fn ended it. */
int metrics_scan(struct metrics_scan *scan, struct day *day, struct err *err);
