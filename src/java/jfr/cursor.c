/* src/java/jfr/cursor.c: the six encodings of a string in JFR. */
#include "java/jfr/cursor.h"

#include "base/cleanup.h"

enum {
	ENCODING_NULL = 0,
	ENCODING_EMPTY = 1,
	ENCODING_POOL = 2,
	ENCODING_UTF8 = 3,
	ENCODING_CHARS = 4,
	ENCODING_LATIN1 = 5,
};

static int put_rune(struct buf *out, uint32_t rune)
{
	uint8_t bytes[4];
	size_t n;

	if (rune < 0x80)
		return buf_append_byte(out, (uint8_t)rune);
	n = rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, rune >>= 6)
		bytes[i] = (uint8_t)(0x80 | (rune & 0x3f));
	bytes[0] = (uint8_t)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | rune);
	return buf_append(out, bytes, n);
}

static bool is_high(uint32_t unit)
{
	return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(uint32_t unit)
{
	return unit >= 0xdc00 && unit < 0xe000;
}

/* UTF-16 units, each as a number; an unpaired surrogate becomes U+FFFD. */
static int read_chars(struct java_jfr_cursor *c, uint64_t n, struct buf *out)
{
	uint32_t high = 0;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n && !c->bad; i++) {
		uint32_t unit = (uint32_t)java_jfr_varint(c) & 0xffff;

		if (!out)
			continue;
		if (high && is_low(unit)) {
			r = put_rune(out, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
			high = 0;
			continue;
		}
		if (high)
			r = put_rune(out, 0xfffd);
		high = is_high(unit) ? unit : 0;
		if (r == 0 && !high)
			r = put_rune(out, is_low(unit) ? 0xfffd : unit);
	}
	return r == 0 && high && out ? put_rune(out, 0xfffd) : r;
}

static int read_latin1(struct java_jfr_cursor *c, uint64_t n, struct buf *out)
{
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++) {
		uint8_t byte = java_jfr_byte(c);

		if (out)
			r = put_rune(out, byte);
	}
	return r;
}

struct java_jfr_text java_jfr_read_text(struct java_jfr_cursor *c, struct buf *scratch)
{
	struct java_jfr_text text = {.kind = JAVA_JFR_TEXT_NULL};
	uint8_t encoding = java_jfr_byte(c);
	uint64_t n;
	int r;

	if (encoding == ENCODING_NULL)
		return text;
	if (encoding == ENCODING_EMPTY)
		return (struct java_jfr_text){.kind = JAVA_JFR_TEXT_BYTES};
	if (encoding == ENCODING_POOL)
		return (struct java_jfr_text){.kind = JAVA_JFR_TEXT_KEY,
					      .number = java_jfr_varint(c)};
	if (encoding > ENCODING_LATIN1) {
		(void)java_jfr_fail(c);
		return text;
	}
	n = java_jfr_count(c);
	if (c->bad)
		return text;
	if (encoding == ENCODING_UTF8) {
		text = (struct java_jfr_text){.kind = JAVA_JFR_TEXT_BYTES,
					      .bytes = view_of(c->at, n)};
		c->at += n;
		return text;
	}
	text = (struct java_jfr_text){.kind = JAVA_JFR_TEXT_SCRATCH,
				      .number = scratch ? scratch->len : 0};
	r = encoding == ENCODING_CHARS ? read_chars(c, n, scratch) : read_latin1(c, n, scratch);
	if (r < 0)
		(void)java_jfr_fail(c);
	else if (scratch)
		text.bytes.len = scratch->len - text.number;
	return text;
}
