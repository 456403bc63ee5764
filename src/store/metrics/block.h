/*
 * src/store/metrics/block.h: the numbers of one resource on disk.
 *
 * A column is one metric with the values of its attributes, numbered within a service and day; a
 * series is a column of one label set. A gauge has one number at a time, a counter its increase, a
 * histogram its buckets and their sum: that is its width.
 *
 *   reading (one time)   varint n, then n times:
 *                          varint column - the one before; varint width; numbers
 *   hour                 varint times, varint columns
 *                        codec column: varint differences of times, in ms
 *                        codec column: per column
 *                          varint column - the one before; varint width
 *                          varint presence: 0 at all times; 1 from (varint) so many times (varint);
 *                            2 a bit for each time follows
 *                          width times: varint length, bytes of numbers.h
 *
 * Times are those of the resource: they are written once, whatever it has of series.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "store/codec.h"

#define METRICS_MAX_COLUMN 65535U /* of a service and day */
#define METRICS_MAX_WIDTH 64U
#define METRICS_MAX_TIMES 4096U /* of an hour's block */
#define METRICS_HOUR_MS 3600000

/* One column at one time. */
struct metrics_cell {
	uint32_t column;
	uint32_t width;
	const double *values;
};

/* Cells by column, ascending, each once; values are finite. */
int metrics_encode_reading(const struct metrics_cell *cells, size_t n, struct buf *out);

struct metrics_reading {
	struct view body;
	size_t at;
	uint64_t left;
	uint64_t column;
	double values[METRICS_MAX_WIDTH];
};
int metrics_open_reading(struct view block, struct metrics_reading *ret);
/* 1 and the next cell, whose values are the reading's; 0: no more; -EBADMSG. */
int metrics_next_cell(struct metrics_reading *r, struct metrics_cell *ret_cell);

/* A column over the times of an hour: width times n_times values, NAN where there is none. */
struct metrics_column {
	uint32_t column;
	uint32_t width;
	const double *values;
};
struct metrics_hour {
	const uint32_t *times_ms; /* in the hour, ascending */
	size_t n_times;
	const struct metrics_column *columns; /* ascending */
	size_t n_columns;
};
int metrics_encode_hour(struct codec *c, const struct metrics_hour *hour, struct buf *out);

struct metrics_hour_reader {
	uint32_t times_ms[METRICS_MAX_TIMES];
	size_t n_times;
	/* Of the column that is read. */
	uint32_t column;
	uint32_t width;
	size_t n_present;
	uint64_t n_columns; /* still to come */
	uint8_t present[METRICS_MAX_TIMES];
	struct view numbers[METRICS_MAX_WIDTH];
	struct view body;
	size_t at;
	double dense[METRICS_MAX_TIMES];
};
/* The times alone; metrics_hour_columns() goes on from there. */
int metrics_open_hour(struct codec *c, struct view block, struct metrics_hour_reader *h,
		      struct cursor *ret_rest);
int metrics_hour_columns(struct codec *c, struct cursor *rest, struct metrics_hour_reader *h);
/* 1 and what is known of the next column; 0: no more; -EBADMSG. */
int metrics_next_column(struct metrics_hour_reader *h);
/* Its numbers number i, n_times of them; NAN where there is none. */
int metrics_column_values(struct metrics_hour_reader *h, uint32_t i, double *values);
