/* src/base/buf.h: a growable byte buffer that never grows past its maximum. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

struct buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t max; /* 0 means the default, BUF_DEFAULT_MAX */
	/* If set, takes what has accumulated: a long text is never in memory as a whole. */
	int (*drain)(void *arg, struct view bytes);
	void *drain_arg;
};

#define BUF_DRAIN_BYTES ((size_t)64 << 10)

#define BUF_DEFAULT_MAX ((size_t)64 << 20)

/* A zeroed struct buf is an empty buffer with the default maximum. */
static inline struct buf buf_with_max(size_t max)
{
	return (struct buf){.max = max};
}

void buf_release(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory for reuse */

/* Makes room for n more bytes. -E2BIG past the maximum, -ENOMEM. */
int buf_reserve(struct buf *b, size_t n);
int buf_append(struct buf *b, const void *data, size_t n);
int buf_append_str(struct buf *b, const char *s);
int buf_append_byte(struct buf *b, uint8_t byte);
int buf_append_varint(struct buf *b, uint64_t value);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Passes the rest to drain. */
int buf_drain(struct buf *b);

/* The contents as a C string; NULL if there is no memory for the NUL. */
const char *buf_cstr(struct buf *b);

static inline struct view buf_view(const struct buf *b)
{
	return view_of(b->data, b->len);
}
