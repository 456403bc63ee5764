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

#define METRICS_MAX_COLUMN 65535U /* of a service and day */
#define METRICS_MAX_WIDTH 64U
#define METRICS_MAX_TIMES 4096U /* of an hour's block */
#define METRICS_HOUR_MS 3600000
#define METRICS_MAX_LABELSET ((1U << 20) - 1)

/* One column at one time. */
struct metrics_cell {
	uint32_t column;
	uint32_t width;
	const double *values;
};

/* Cells by ascending column, each once; values must be finite. */
int metrics_encode_reading(const struct metrics_cell *cells, size_t n, struct buf *out);

struct metrics_reading {
	struct view body;
	size_t at;
	uint64_t left;
	uint64_t column;
	double values[METRICS_MAX_WIDTH];
};
int metrics_open_reading(struct view block, struct metrics_reading *ret);
/* 1 and the next cell, whose values belong to the reading; 0: no more; -EBADMSG. */
int metrics_next_cell(struct metrics_reading *r, struct metrics_cell *ret_cell);

/* When resources were read in an hour. */
struct metrics_times {
	uint32_t times_ms[METRICS_MAX_TIMES]; /* in the hour, ascending */
	size_t n_times;
	struct view labelsets; /* for metrics_next_labelset() */
	size_t at;
	uint64_t n_labelsets;
	uint64_t labelset;
};
/* At least one time; label sets ascending. */
int metrics_encode_times(const uint32_t *times_ms, size_t n_times, const uint32_t *labelsets,
			 size_t n_labelsets, struct buf *out);
int metrics_decode_times(struct view block, struct metrics_times *ret);
/* 1 and the next label set; 0: no more; -EBADMSG. */
int metrics_next_labelset(struct metrics_times *t, uint32_t *ret_labelset);

/* A column over the times of an hour: width * n_times values, NAN for gaps. */
struct metrics_column {
	uint32_t column;
	uint32_t width;
	const double *values;
	size_t n_times;
};
int metrics_encode_hour(struct codec *c, uint32_t list, const struct metrics_column *column,
			struct buf *out);

struct metrics_hour {
	uint64_t list; /* which times */
	uint32_t width;
	struct cursor rest;
	/* After metrics_read_hour(). */
	size_t n_times;
	size_t n_present;
	uint8_t present[METRICS_MAX_TIMES];
	struct view numbers[METRICS_MAX_WIDTH];
	double dense[METRICS_MAX_TIMES];
};
int metrics_open_hour(struct view block, struct metrics_hour *h);
/* Continues once the number of times is known. */
int metrics_read_hour(struct codec *c, struct metrics_hour *h, size_t n_times);
/* Row i of its numbers, n_times of them; NAN for gaps. */
int metrics_hour_values(struct metrics_hour *h, uint32_t i, double *values);
