/* src/store/metrics/bits.h: a stream of numbers of any width, lowest bit first. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/view.h"

#define STORE_BITS_MAX 56U /* per call */

struct store_bits_writer {
	struct buf *out;
	uint64_t word;
	unsigned int n; /* bits in it, below 8 between calls */
};

/* The value must not have more than n bits. */
static inline int store_bits_put(struct store_bits_writer *w, uint64_t value, unsigned int n)
{
	int r = 0;

	w->word |= value << w->n;
	w->n += n;
	for (; r == 0 && w->n >= 8; w->n -= 8, w->word >>= 8)
		r = buf_append_byte(w->out, (uint8_t)w->word);
	return r;
}

static inline int store_bits_end(struct store_bits_writer *w)
{
	return w->n == 0 ? 0 : buf_append_byte(w->out, (uint8_t)w->word);
}

struct store_bits_reader {
	struct view bytes;
	size_t at; /* in bits */
};

/* At least the next STORE_BITS_MAX bits; zeros past the end, which store_bits_ok() detects. */
static inline uint64_t store_bits_peek(const struct store_bits_reader *r)
{
	size_t byte = r->at / 8;
	uint64_t word = 0;

	if (byte + sizeof(word) <= r->bytes.len)
		memcpy(&word, r->bytes.data + byte, sizeof(word));
	else if (byte < r->bytes.len)
		memcpy(&word, r->bytes.data + byte, r->bytes.len - byte);
	return le64toh(word) >> r->at % 8;
}

static inline uint64_t store_bits_take(struct store_bits_reader *r, unsigned int n)
{
	uint64_t value = store_bits_peek(r) & ((1ULL << n) - 1);

	r->at += n;
	return value;
}

/* Whether nothing was taken past the end. */
static inline bool store_bits_ok(const struct store_bits_reader *r)
{
	return r->at <= r->bytes.len * 8;
}
