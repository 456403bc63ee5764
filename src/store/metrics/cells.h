/*
 * src/store/metrics/cells.h: numbers on their way into a block, by column, then time. Those with
 * the same column and time are summed.
 */
#pragma once

#include "base/buf.h"
#include "store/metrics/block.h"

struct store_cell {
	uint32_t column;
	uint32_t time; /* index, if there are several */
	uint32_t width;
	uint32_t at; /* of its first value */
};

/* A zeroed struct store_cells is empty. */
struct store_cells {
	struct buf items;  /* struct store_cell */
	struct buf values; /* double */
	struct buf out;	   /* scratch for encoding */
	struct buf columns;
	size_t len;
};
void store_cells_release(struct store_cells *c);
void store_cells_clear(struct store_cells *c);
int store_cells_add(struct store_cells *c, uint32_t column, uint32_t time, const double *values,
		    uint32_t width);
/* Adds the numbers of a stored reading. -EBADMSG if damaged; then none are added. */
int store_cells_add_reading(struct store_cells *c, struct view block, uint32_t time);
/* Encodes all as one reading; -E2BIG, -ENOMEM. */
int store_cells_encode_reading(struct store_cells *c, struct buf *out);
/* Calls fn for each column, spread over n_times. A negative result ends it. */
int store_cells_each_column(struct store_cells *c, size_t n_times,
			    int (*fn)(void *ctx, const struct store_metrics_column *column),
			    void *ctx);
