/*
 * src/java/jfr/cursor.h: reads the numbers and strings of a JFR file in sequence.
 *
 * A cursor walks over bytes that may be forged. Missing or invalid data sets bad, which sticks;
 * later values are 0, so only the end of a structure needs a check.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/view.h"

struct java_jfr_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

static inline struct java_jfr_cursor java_jfr_cursor_of(struct view v)
{
	return (struct java_jfr_cursor){.at = v.data, .end = v.data ? v.data + v.len : NULL};
}

static inline size_t java_jfr_left(const struct java_jfr_cursor *c)
{
	return (size_t)(c->end - c->at);
}

static inline uint64_t java_jfr_fail(struct java_jfr_cursor *c)
{
	c->bad = true;
	c->at = c->end;
	return 0;
}

static inline uint8_t java_jfr_byte(struct java_jfr_cursor *c)
{
	return c->at < c->end ? *c->at++ : (uint8_t)java_jfr_fail(c);
}

/*
 * Seven bits per byte, least significant first; the ninth byte has eight, so there is never a
 * tenth. Padding is normal: writers reserve room for a size they learn later.
 */
static inline uint64_t java_jfr_varint(struct java_jfr_cursor *c)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;

		if (shift == 56)
			return value | (uint64_t)byte << 56;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	return java_jfr_fail(c);
}

static inline void java_jfr_skip_bytes(struct java_jfr_cursor *c, uint64_t n)
{
	if (n > java_jfr_left(c))
		(void)java_jfr_fail(c);
	else
		c->at += n;
}

/* n is at most 8. */
static inline uint64_t java_jfr_big_endian(struct java_jfr_cursor *c, unsigned int n)
{
	uint64_t value = 0;

	if (n > java_jfr_left(c))
		return java_jfr_fail(c);
	while (n--)
		value = value << 8 | *c->at++;
	return value;
}

/* A count of items of at least one byte each; bad if they cannot fit. */
static inline uint64_t java_jfr_count(struct java_jfr_cursor *c)
{
	uint64_t n = java_jfr_varint(c);

	return n > java_jfr_left(c) ? java_jfr_fail(c) : n;
}

enum java_jfr_text_kind {
	JAVA_JFR_TEXT_NULL,
	JAVA_JFR_TEXT_BYTES,   /* in the input bytes */
	JAVA_JFR_TEXT_SCRATCH, /* in scratch, from offset number */
	JAVA_JFR_TEXT_KEY,     /* number is its key in the pool of strings */
};

struct java_jfr_text {
	enum java_jfr_text_kind kind;
	uint64_t number;
	struct view bytes; /* for SCRATCH only the length: scratch may move */
};

/* UTF-8, whatever the encoding was. Without scratch the string is only skipped. */
struct java_jfr_text java_jfr_read_text(struct java_jfr_cursor *c, struct buf *scratch);
