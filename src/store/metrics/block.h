/*
 * src/store/metrics/block.h: the numbers of one resource on disk.
 *
 * A column is one metric with the values of its attributes, numbered within a service and day; a
 * series is a column of one label set. At each time a gauge has one number, a counter its increase,
 * a histogram its buckets and their sum: that is its width.
 *
 *   reading (one time)   varint n, then n times:
 *                          varint column - the previous one; varint width; numbers
 *   times (of an hour)   varint n; varint the first; numbers.h (with their length) of the n - 1
 *                        differences, in ms; varint n, then n label sets read at these times:
 *                        varint label set - the previous one
 *   hour (one series)    varint which times of the service and hour; varint width
 *                        codec column: varint presence: 0 at all times; 1 from (varint) so many
 *                            times (varint); 2 a bit for each time follows
 *                          width times: varint length, bytes of numbers.h
 *
 * Most resources of a service are read at the same times, which are written once for all of them.
 * Each series is its own block: a query for one metric of many processes reads nothing else.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "store/codec/codec.h"

#define STORE_METRICS_MAX_COLUMN 65535U /* of a service and day */
#define STORE_METRICS_MAX_WIDTH 64U
#define STORE_METRICS_MAX_TIMES 4096U /* of an hour's block */
#define STORE_METRICS_HOUR_MS 3600000
#define STORE_METRICS_MAX_LABELSET ((1U << 20) - 1)

/* One column at one time. */
struct store_metrics_cell {
	uint32_t column;
	uint32_t width;
	const double *values;
};

/* Cells by ascending column, each once; values must be finite. */
int store_metrics_encode_reading(const struct store_metrics_cell *cells, size_t n, struct buf *out);

struct store_metrics_reading {
	struct view body;
	size_t at;
	uint64_t left;
	uint64_t column;
	double values[STORE_METRICS_MAX_WIDTH];
};
int store_metrics_open_reading(struct view block, struct store_metrics_reading *ret);
/* 1 and the next cell, whose values belong to the reading; 0: no more; -EBADMSG. */
int store_metrics_next_cell(struct store_metrics_reading *r, struct store_metrics_cell *ret_cell);

/* When resources were read in an hour. */
struct store_metrics_times {
	uint32_t times_ms[STORE_METRICS_MAX_TIMES]; /* in the hour, ascending */
	size_t n_times;
	struct view labelsets; /* for store_metrics_next_labelset() */
	size_t at;
	uint64_t n_labelsets;
	uint64_t labelset;
};
/* At least one time; label sets ascending. */
int store_metrics_encode_times(const uint32_t *times_ms, size_t n_times, const uint32_t *labelsets,
			       size_t n_labelsets, struct buf *out);
int store_metrics_decode_times(struct view block, struct store_metrics_times *ret);
/* 1 and the next label set; 0: no more; -EBADMSG. */
int store_metrics_next_labelset(struct store_metrics_times *t, uint32_t *ret_labelset);

/* A column over the times of an hour: width * n_times values, NAN for gaps. */
struct store_metrics_column {
	uint32_t column;
	uint32_t width;
	const double *values;
	size_t n_times;
};
int store_metrics_encode_hour(struct store_codec *c, uint32_t list,
			      const struct store_metrics_column *column, struct buf *out);

struct store_metrics_hour {
	uint64_t list; /* which times */
	uint32_t width;
	struct store_cursor rest;
	/* After store_metrics_read_hour(). */
	size_t n_times;
	size_t n_present;
	uint8_t present[STORE_METRICS_MAX_TIMES];
	struct view numbers[STORE_METRICS_MAX_WIDTH];
	double dense[STORE_METRICS_MAX_TIMES];
};
int store_metrics_open_hour(struct view block, struct store_metrics_hour *h);
/* Continues once the number of times is known. */
int store_metrics_read_hour(struct store_codec *c, struct store_metrics_hour *h, size_t n_times);
/* Row i of its numbers, n_times of them; NAN for gaps. */
int store_metrics_hour_values(struct store_metrics_hour *h, uint32_t i, double *values);
