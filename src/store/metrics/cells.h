/*
 * src/store/metrics/cells.h: numbers on their way into a block, by column, then time. Those with
 * the same column and time are summed.
 */
#pragma once

#include "base/buf.h"
#include "store/metrics/block.h"

struct cell {
	uint32_t column;
	uint32_t time; /* index, if there are several */
	uint32_t width;
	uint32_t at; /* of its first value */
};

/* A zeroed struct cells is empty. */
struct cells {
	struct buf items;  /* struct cell */
	struct buf values; /* double */
	struct buf out;	   /* scratch for encoding */
	struct buf columns;
	size_t len;
};
void cells_release(struct cells *c);
void cells_clear(struct cells *c);
int cells_add(struct cells *c, uint32_t column, uint32_t time, const double *values,
	      uint32_t width);
/* Adds the numbers of a stored reading. -EBADMSG if damaged; then none are added. */
int cells_add_reading(struct cells *c, struct view block, uint32_t time);
/* Encodes all as one reading; -E2BIG, -ENOMEM. */
int cells_encode_reading(struct cells *c, struct buf *out);
/* Calls fn for each column, spread over n_times. A negative result ends it. */
int cells_each_column(struct cells *c, size_t n_times,
		      int (*fn)(void *ctx, const struct metrics_column *column), void *ctx);
