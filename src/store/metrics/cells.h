/*
 * src/store/metrics/cells.h: numbers on their way into a block: by column, then time. Those of one
 * column and time are added up.
 */
#pragma once

#include "base/buf.h"
#include "store/metrics/block.h"

struct cell {
	uint32_t column;
	uint32_t time; /* index, where there are several */
	uint32_t width;
	uint32_t at; /* of its first value */
};

/* A zeroed struct cells is empty. */
struct cells {
	struct buf items;  /* struct cell */
	struct buf values; /* double */
	struct buf out;	   /* what encoding needs */
	struct buf columns;
	size_t len;
};
void cells_release(struct cells *c);
void cells_clear(struct cells *c);
int cells_add(struct cells *c, uint32_t column, uint32_t time, const double *values,
	      uint32_t width);
/* The numbers of a stored reading; -EBADMSG when it is damaged, then none are added. */
int cells_add_reading(struct cells *c, struct view block, uint32_t time);
/* All of them as one reading; -E2BIG, -ENOMEM. */
int cells_encode_reading(struct cells *c, struct buf *out);
/* Each column spread over so many times. Below 0 ends it. */
int cells_each_column(struct cells *c, size_t n_times,
		      int (*fn)(void *ctx, const struct metrics_column *column), void *ctx);
