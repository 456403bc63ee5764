/* src/store/codec/column.h: shared by the codecs of blocks and chunks. */
#pragma once

#include "store/codec/block.h"

static inline uint64_t store_block_gcd(uint64_t divisor, int64_t value)
{
	uint64_t a = value < 0 ? -(uint64_t)value : (uint64_t)value;
	uint64_t b = divisor;

	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Mostly by 1, or by numbers that fit a division of half the width. */
static inline int64_t store_block_divide(int64_t value, int64_t divisor)
{
	if (divisor == 1)
		return value;
	if (((uint64_t)value | (uint64_t)divisor) >> 32 == 0)
		return (uint32_t)value / (uint32_t)divisor;
	return value / divisor;
}

static inline uint8_t *store_put_varint(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)v | 0x80;
	*p++ = (uint8_t)v;
	return p;
}

/* Reserves room for n varints and for bytes; returns where to write, or NULL if out of memory. */
static inline uint8_t *store_column_begin(struct store_codec *c, unsigned int slot, size_t n,
					  size_t bytes)
{
	buf_clear(&c->columns[slot]);
	return buf_reserve(&c->columns[slot], n * 10 + bytes + 1) < 0 ? NULL
								      : c->columns[slot].data;
}

static inline int store_column_end(struct store_codec *c, unsigned int slot, const uint8_t *end,
				   int level, struct buf *out)
{
	const uint8_t *begin = c->columns[slot].data;

	return store_codec_put_column(c, out, view_of(begin, (size_t)(end - begin)), level);
}

void store_block_sums_reach(struct store_block_sums *sums, uint32_t stack);

/* stack <= STORE_BLOCK_MAX_STACK. The caller raises n_stacks. */
static inline void store_block_sums_add(struct store_block_sums *sums, uint32_t stack,
					int64_t value)
{
	if (stack >= sums->n_clear)
		store_block_sums_reach(sums, stack);
	sums->values[stack] = store_block_add(sums->values[stack], value);
}
