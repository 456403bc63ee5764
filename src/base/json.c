/* src/base/json.c: see json.h. */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"

#define JSON_MAX_DIGITS 40
#define JSON_PARTS 64
#define JSON_MAX_EXACT 9007199254740992.0 /* 2^53 */

static void json_raw(struct json *j, const char *s, size_t n)
{
	int r;

	if (j->error)
		return;
	r = buf_append(j->out, s, n);
	if (r < 0)
		j->error = r;
}

static void json_puts(struct json *j, const char *s)
{
	json_raw(j, s, strlen(s));
}

/* Called before a value: writes the comma, unless it is the first or follows its key. */
static void json_separate(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (j->has_item[j->depth])
		json_puts(j, ",");
	j->has_item[j->depth] = true;
}

static void json_open(struct json *j, const char *bracket)
{
	json_separate(j);
	json_puts(j, bracket);
	if (j->depth + 1 >= JSON_MAX_DEPTH) {
		j->error = -E2BIG;
		return;
	}
	j->has_item[++j->depth] = false;
}

static void json_close(struct json *j, const char *bracket)
{
	if (j->depth > 0)
		j->depth--;
	json_puts(j, bracket);
}

void json_object_begin(struct json *j)
{
	json_open(j, "{");
}

void json_object_end(struct json *j)
{
	json_close(j, "}");
}

void json_array_begin(struct json *j)
{
	json_open(j, "[");
}

void json_array_end(struct json *j)
{
	json_close(j, "]");
}

/* Length of the valid UTF-8 sequence at p, or 0. */
static size_t utf8_len(const uint8_t *p, size_t left)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	uint32_t c;

	if (n == 1)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
		return 0;
	c = p[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fU);
	}
	if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
	    (n == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	return n;
}

static void json_quoted(struct json *j, struct view v)
{
	json_puts(j, "\"");
	for (size_t i = 0; i < v.len;) {
		uint8_t c = v.data[i];
		size_t n = utf8_len(v.data + i, v.len - i);
		char esc[8];

		if (n == 0) {
			json_puts(j, "\\ufffd");
			n = 1;
		} else if (c == '"' || c == '\\') {
			(void)snprintf(esc, sizeof(esc), "\\%c", c);
			json_puts(j, esc);
		} else if (c < 0x20) {
			(void)snprintf(esc, sizeof(esc), "\\u%04x", c);
			json_puts(j, esc);
		} else if (c >= 0x80 && text_unsafe(v, i)) {
			json_puts(j, "\\ufffd");
		} else {
			json_raw(j, (const char *)v.data + i, n);
		}
		i += n;
	}
	json_puts(j, "\"");
}

void json_key(struct json *j, const char *key)
{
	json_separate(j);
	json_quoted(j, view_str(key));
	json_puts(j, ":");
	j->after_key = true;
}

void json_string(struct json *j, struct view value)
{
	json_separate(j);
	json_quoted(j, value);
}

void json_cstring(struct json *j, const char *value)
{
	if (value)
		json_string(j, view_str(value));
	else
		json_null(j);
}

/*
 * Writes the digits that end before end, and returns where they start. printf takes five times as
 * long.
 */
static char *json_digits(char *end, uint64_t value)
{
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return end;
}

/* The number from text to end; the byte before it is free for the comma. */
static void json_number(struct json *j, char *text, const char *end)
{
	bool comma = !j->after_key && j->has_item[j->depth];

	j->has_item[j->depth] = true;
	j->after_key = false;
	*--text = ',';
	text += !comma;
	json_raw(j, text, (size_t)(end - text));
}

void json_uint(struct json *j, uint64_t value)
{
	char text[JSON_MAX_DIGITS], *end = text + sizeof(text);

	json_number(j, json_digits(end, value), end);
}

void json_int(struct json *j, int64_t value)
{
	char text[JSON_MAX_DIGITS], *end = text + sizeof(text);
	char *at = json_digits(end, value < 0 ? -(uint64_t)value : (uint64_t)value);

	if (value < 0)
		*--at = '-';
	json_number(j, at, end);
}

/*
 * Writes whole numbers and 64ths, which is what profiles are made of, as exact digits. False for
 * anything else.
 */
static bool json_double_fast(struct json *j, double value)
{
	double parts = fabs(value) * JSON_PARTS;
	char text[JSON_MAX_DIGITS], *end = text + sizeof(text), *at = end;
	uint64_t n;

	if (!(parts < JSON_MAX_EXACT) || parts != floor(parts))
		return false;
	n = (uint64_t)parts;
	if (n % JSON_PARTS) {
		/* 1/64 is 0.015625. */
		uint64_t digits = n % JSON_PARTS * 15625 + 1000000;

		while (digits % 10 == 0)
			digits /= 10;
		at = json_digits(end, digits);
		/* The leading 1 preserved the zeros; the decimal point replaces it. */
		*at = '.';
	}
	at = json_digits(at, n / JSON_PARTS);
	if (signbit(value))
		*--at = '-';
	json_number(j, at, end);
	return true;
}

void json_double(struct json *j, double value)
{
	char text[JSON_MAX_DIGITS];

	if (!isfinite(value)) {
		json_null(j);
		return;
	}
	if (json_double_fast(j, value))
		return;
	(void)snprintf(text, sizeof(text), "%.17g", value);
	json_separate(j);
	json_puts(j, text);
}

void json_bool(struct json *j, bool value)
{
	json_separate(j);
	json_puts(j, value ? "true" : "false");
}

void json_null(struct json *j)
{
	json_separate(j);
	json_puts(j, "null");
}

int json_finish(const struct json *j)
{
	return j->error;
}
