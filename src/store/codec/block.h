/*
 * src/store/codec/block.h: values by stack: one collection, one hour of collections, or the sums of
 * a day.
 *
 *   sums  varints: n, samples, gcd
 *         columns: stack id deltas; value / gcd, zigzag
 *   pack  varints: times, stacks, samples, gcd, differences (0 or 1)
 *         columns: times (ms in the hour, deltas); stack id deltas; samples of each stack;
 *                  index of time deltas; value / gcd, zigzag
 *
 * A pack is transposed: all values of one stack are adjacent, by time. With differences, each value
 * of a stack is coded as the change from the previous one, which is mostly zero for snapshots.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/view.h"
#include "store/codec/codec.h"

#define STORE_BLOCK_MAX_STACK 200000U	 /* the greatest stack id */
#define STORE_BLOCK_MAX_SAMPLES 1000000U /* in one pack */
#define STORE_BLOCK_HOUR_MS 3600000U

struct store_block_value {
	uint32_t stack;
	int64_t value;
};

struct store_block_sample {
	uint32_t stack;
	uint32_t time; /* index into the times of the pack */
	int64_t value;
};

/*
 * Saturating sums by stack id. There is room for STORE_BLOCK_MAX_STACK + 1, mostly never touched;
 * zeros are written only where needed. Empty without values.
 */
struct store_block_sums {
	int64_t *values;
	uint32_t n_stacks; /* all ids added to are below this */
	uint32_t n_clear;  /* all entries below are valid; zeros beyond n_stacks */
	uint64_t samples;
	bool torn; /* a failure left part of a block in them */
};

static inline int64_t store_block_add(int64_t a, int64_t b)
{
	int64_t sum;

	/* Saturates rather than overflowing to the wrong sign. */
	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? -INT64_MAX : INT64_MAX;
	return sum;
}

void store_block_sums_clear(struct store_block_sums *sums); /* for reuse */

/* Stable sort by stack. tmp has the same length. */
void store_block_sort(struct store_block_value *values, size_t n, struct store_block_value *tmp);
/* Merges values of equal stacks, which are sorted, and drops zeros; returns how many remain. */
size_t store_block_add_up(struct store_block_value *values, size_t n);
/* Both. */
size_t store_block_normalise(struct store_block_value *values, size_t n,
			     struct store_block_value *tmp);

/* values: as left by store_block_add_up(). samples: the number of stored samples they stand for. */
int store_block_encode_sums(struct store_codec *c, const struct store_block_value *values, size_t n,
			    uint64_t samples, struct buf *out);
/* One hour of one process; samples are sorted by stack, then time. */
struct store_block_hour {
	const uint32_t *times_ms; /* in the hour, ascending */
	size_t n_times;
	const struct store_block_sample *samples;
	size_t n_samples; /* <= STORE_BLOCK_MAX_SAMPLES */
};
int store_block_encode_pack(struct store_codec *c, const struct store_block_hour *hour,
			    bool differences, struct buf *out);

/* Appends struct store_block_value to out. -EBADMSG, -ENOMEM, -E2BIG. */
int store_block_decode_sums(struct store_codec *c, struct view block, struct buf *out);
/* A block whose checksum is wrong adds nothing. After any other failure, sums are torn. */
int store_block_sum_sums(struct store_codec *c, struct view block, struct store_block_sums *sums);
/* Only collections with from_ms <= time < to_ms within the hour. */
int store_block_sum_pack(struct store_codec *c, struct view block, uint32_t from_ms, uint32_t to_ms,
			 struct store_block_sums *sums);

/* How the stacks of a function count, by stack id: STORE_BLOCK_MAX_STACK + 1 of them. */
enum store_block_mark {
	STORE_BLOCK_UNMARKED,
	STORE_BLOCK_TOTAL, /* the function is in it */
	STORE_BLOCK_SELF,  /* and it is the leaf */
};

/* What the marked stacks have at one time. */
struct store_block_reading {
	uint32_t ms; /* in the hour */
	int64_t self;
	int64_t total;
};

static inline void store_block_reading_add(struct store_block_reading *r, uint8_t mark,
					   int64_t value)
{
	if (mark >= STORE_BLOCK_TOTAL)
		r->total = store_block_add(r->total, value);
	if (mark >= STORE_BLOCK_SELF)
		r->self = store_block_add(r->self, value);
}

/* Adds one collection. What was added before a failure stays. */
int store_block_read_sums(struct store_codec *c, struct view block, const uint8_t *marks,
			  struct store_block_reading *reading);
/* Appends a reading for each time of the pack; nothing on failure. */
int store_block_read_pack(struct store_codec *c, struct view block, const uint8_t *marks,
			  struct buf *out);
