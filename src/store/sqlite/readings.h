/*
 * src/store/sqlite/readings.h: what one function has in each reading of a process.
 *
 * The dictionary of the day says which stacks the function is in; only their values are added up,
 * hour by hour, so that memory does not grow with the window.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "store/codec/block.h"
#include "store/sqlite/state.h"

/* Empty if zeroed. */
struct store_readings {
	struct store_codec codec;
	uint8_t *marks;	    /* of the day's stacks: enum store_block_mark */
	uint8_t *frames;    /* of the day: one bit per frame that is of the function */
	uint32_t first;	    /* its outermost frame in the stack being read; UINT32_MAX: none */
	struct map index;   /* ms << 20 | label set to its place in found */
	struct buf found;   /* struct store_block_reading of one hour */
	struct buf scratch; /* of one block */
	const struct store_function *function;
};

void store_readings_release(struct store_readings *r);
/* Finds the stacks of the function in the day's dictionary. */
int store_readings_begin(struct store_readings *r, struct store_day *day, uint32_t service,
			 const struct store_function *function, struct err *err);
/* Reads one hour of a stream, of label sets that pass. -E2BIG: too many processes. */
int store_readings_hour(struct store_readings *r, struct store_day *day, uint32_t stream,
			const uint8_t *bits, unsigned int hour, struct err *err);
/* NULL if the reading of this key of a point could not be read. */
const struct store_block_reading *store_readings_get(const struct store_readings *r, int64_t key);
