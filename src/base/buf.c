/* src/base/buf.c: see buf.h. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max, .drain = b->drain, .drain_arg = b->drain_arg};
}

void buf_clear(struct buf *b)
{
	b->len = 0;
}

int buf_reserve(struct buf *b, size_t n)
{
	size_t max = b->max ? b->max : BUF_DEFAULT_MAX;
	size_t cap;
	uint8_t *data;

	if (n <= b->cap - b->len)
		return 0;
	if (n > max || b->len > max - n)
		return -E2BIG;
	cap = MIN(MAX(b->cap, (size_t)64), max);
	while (cap < b->len + n)
		cap = cap > max / 2 ? max : cap * 2;
	data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_drain(struct buf *b)
{
	int r = b->len ? b->drain(b->drain_arg, buf_view(b)) : 0;

	b->len = 0;
	return r;
}

static int buf_added(struct buf *b, size_t n)
{
	b->len += n;
	return b->drain && b->len >= BUF_DRAIN_BYTES ? buf_drain(b) : 0;
}

int buf_append(struct buf *b, const void *data, size_t n)
{
	int r = buf_reserve(b, n);

	if (r < 0)
		return r;
	if (n)
		memcpy(b->data + b->len, data, n);
	return buf_added(b, n);
}

int buf_append_str(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_append_byte(struct buf *b, uint8_t byte)
{
	return buf_append(b, &byte, 1);
}

int buf_append_varint(struct buf *b, uint64_t value)
{
	uint8_t bytes[10];
	size_t n = 0;

	while (value >= 0x80) {
		bytes[n++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	bytes[n++] = (uint8_t)value;
	return buf_append(b, bytes, n);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	r = buf_reserve(b, (size_t)n + 1);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return buf_added(b, (size_t)n);
}

const char *buf_cstr(struct buf *b)
{
	if (buf_reserve(b, 1) < 0)
		return NULL;
	b->data[b->len] = 0;
	return (const char *)b->data;
}
