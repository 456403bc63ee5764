/*
 * src/store/metrics/scan.h: scans the stored numbers of a service within a day, by column, hour and
 * label set. A damaged block is a gap, and counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/codec/codec.h"
#include "store/sqlite/day.h"

/* Numbers of one series: width rows of n, stride apart; NAN for gaps. */
struct store_metrics_batch {
	uint32_t labelset;
	uint32_t column;
	uint32_t width;
	uint64_t times; /* batches with the same number have the same times; 0: none does */
	const uint32_t *times_ms; /* after begin_ms, ascending */
	int64_t begin_ms;	  /* in the day */
	size_t n;
	const double *values;
	size_t stride;
};

struct store_metrics_scan {
	uint32_t service;
	int64_t from_ms; /* in the day */
	int64_t to_ms;
	const uint8_t *labelsets; /* bits of the wanted ones; NULL: all */
	/* Bits of the wanted ones. NULL: only label sets and times, in batches without values. */
	const uint8_t *columns;
	bool presence; /* values are not needed: 0 if there is one */
	/* Negative: ends the scan with this error; positive: ends it without. */
	int (*fn)(void *ctx, const struct store_metrics_batch *batch);
	void *ctx;
};

#define STORE_METRICS_COLUMN_BYTES 8192U /* bits of all columns */

/* Past hours first, then readings. 1 if fn ended it. */
int store_metrics_scan(struct store_metrics_scan *scan, struct store_day *day, struct err *err);
