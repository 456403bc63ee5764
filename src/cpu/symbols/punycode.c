/*
 * src/cpu/symbols/punycode.c: see punycode.h. The ASCII characters come before the last delimiter;
 * after it come numbers, each telling how far to advance before inserting the next character.
 */
#include "cpu/symbols/punycode.h"

#include <errno.h>
#include <string.h>

#define PUNYCODE_MAX_CHARS 128
#define PUNYCODE_BASE 36U
#define PUNYCODE_TMIN 1U
#define PUNYCODE_TMAX 26U
#define PUNYCODE_SKEW 38U
#define PUNYCODE_DAMP 700U
#define PUNYCODE_FIRST 128U

size_t cpu_punycode_utf8(uint32_t code, char *dst)
{
	if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	if (code < 0x80) {
		dst[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		dst[0] = (char)(0xc0 | code >> 6);
		dst[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		dst[0] = (char)(0xe0 | code >> 12);
		dst[1] = (char)(0x80 | (code >> 6 & 0x3f));
		dst[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	dst[0] = (char)(0xf0 | code >> 18);
	dst[1] = (char)(0x80 | (code >> 12 & 0x3f));
	dst[2] = (char)(0x80 | (code >> 6 & 0x3f));
	dst[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

static uint32_t punycode_adapt(uint32_t delta, uint32_t n, bool is_first)
{
	uint32_t k = 0;

	delta = is_first ? delta / PUNYCODE_DAMP : delta / 2;
	delta += delta / n;
	while (delta > (PUNYCODE_BASE - PUNYCODE_TMIN) * PUNYCODE_TMAX / 2) {
		delta /= PUNYCODE_BASE - PUNYCODE_TMIN;
		k += PUNYCODE_BASE;
	}
	return k + (PUNYCODE_BASE - PUNYCODE_TMIN + 1) * delta / (delta + PUNYCODE_SKEW);
}

/* A variable-length number at *at; false if invalid. */
static bool punycode_number(struct view text, size_t *at, uint32_t bias, uint32_t *ret)
{
	uint64_t value = 0, weight = 1;

	for (uint32_t k = PUNYCODE_BASE;; k += PUNYCODE_BASE) {
		uint32_t digit, t;
		uint8_t c;

		if (!view_u8(text, (*at)++, &c))
			return false;
		if (c >= 'a' && c <= 'z')
			digit = c - 'a';
		else if (c >= '0' && c <= '9')
			digit = c - '0' + 26U;
		else
			return false;
		value += digit * weight;
		t = k <= bias			? PUNYCODE_TMIN
		    : k >= bias + PUNYCODE_TMAX ? PUNYCODE_TMAX
						: k - bias;
		if (value > INT32_MAX)
			return false;
		if (digit < t)
			break;
		weight *= PUNYCODE_BASE - t;
		if (weight > INT32_MAX)
			return false;
	}
	*ret = (uint32_t)value;
	return true;
}

/* Decodes the whole name; returns the number of characters. */
static ssize_t punycode_chars(struct view ascii, struct view coded, uint32_t *chars)
{
	uint32_t code = PUNYCODE_FIRST, i = 0, bias = 72, delta, n = 0;
	size_t at = 0;

	if (ascii.len > PUNYCODE_MAX_CHARS)
		return -E2BIG;
	for (; n < ascii.len; n++)
		chars[n] = ascii.data[n];
	while (at < coded.len) {
		if (n == PUNYCODE_MAX_CHARS)
			return -E2BIG;
		if (!punycode_number(coded, &at, bias, &delta))
			return -EBADMSG;
		n++;
		bias = punycode_adapt(delta, n, i == 0 && code == PUNYCODE_FIRST);
		i += delta;
		code += i / n;
		i %= n;
		if (code > 0x10ffff)
			return -EBADMSG;
		memmove(chars + i + 1, chars + i, (n - 1 - i) * sizeof(*chars));
		chars[i++] = code;
	}
	return n;
}

ssize_t cpu_punycode_decode(struct view text, char delimiter, char *dst, size_t cap)
{
	const uint8_t *last = text.len ? memrchr(text.data, delimiter, text.len) : NULL;
	size_t split = last ? (size_t)(last - text.data) : 0, len = 0;
	struct view ascii = view_of(text.data, split);
	struct view coded = last ? view_of(last + 1, text.len - split - 1) : text;
	uint32_t chars[PUNYCODE_MAX_CHARS];
	ssize_t n = coded.len ? punycode_chars(ascii, coded, chars) : -EBADMSG;

	if (n < 0)
		return n;
	for (ssize_t i = 0; i < n; i++) {
		char utf8[4];
		size_t bytes = cpu_punycode_utf8(chars[i], utf8);

		if (bytes == 0)
			return -EBADMSG;
		if (bytes > cap - len)
			return -E2BIG;
		memcpy(dst + len, utf8, bytes);
		len += bytes;
	}
	return (ssize_t)len;
}
