/*
 * src/store/codec/codec.h: shared by all blocks on disk: the envelope and columns of varints.
 *
 *   offset 0  version (1)
 *          1  kind: what the body is
 *          2  CRC-32C of everything after it
 *          6  body: varints and columns
 *
 *   column    varint  length of its bytes << 1 | compressed
 *             varint  length on disk, if compressed
 *             bytes   as they are, or one zstd frame
 *
 * A day file may be damaged or forged: every length is checked against the available bytes and
 * STORE_CODEC_MAX_COLUMN before memory is allocated; -EBADMSG if it does not fit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/view.h"

#define STORE_CODEC_VERSION 1
#define STORE_CODEC_MAX_COLUMN ((size_t)16 << 20)
#define STORE_CODEC_PLAIN 0   /* this level compresses nothing */
#define STORE_CODEC_COLUMNS 5 /* open at a time */

enum store_codec_kind {
	STORE_CODEC_SUMS = 1, /* stack ids and values: one collection, or a whole day */
	STORE_CODEC_PACK,     /* an hour of collections */
	STORE_CODEC_STACKS_1, /* as in day files of format 1 */
	STORE_CODEC_FRAMES,
	STORE_CODEC_STACKS,
	STORE_CODEC_READING, /* metrics of one resource at one time */
	STORE_CODEC_TIMES,   /* when they were read within an hour */
	STORE_CODEC_HOUR,    /* one series over an hour */
	STORE_CODEC_METRIC,  /* what a metric is */
	STORE_CODEC_EVENT,
	STORE_CODEC_TOTALS, /* of all services, in a minute or ten */
	STORE_CODEC_ABOUT,  /* what a service is */
};

struct store_codec {
	void *compressor;   /* ZSTD_CCtx, created on first use */
	void *decompressor; /* ZSTD_DCtx */
	struct buf columns[STORE_CODEC_COLUMNS];
	struct buf scratch;
};

/* A zeroed struct store_codec is ready for use by one thread. */
void store_codec_release(struct store_codec *c);

/* Writing: begin, then varints and columns into out, then end. All return 0, -ENOMEM or -E2BIG. */
int store_codec_begin(struct buf *out, enum store_codec_kind kind);
/* Compressed if that saves space. */
int store_codec_put_column(struct store_codec *c, struct buf *out, struct view column, int level);
/* Compressed only if the result has at most this many bytes. */
int store_codec_put_column_below(struct store_codec *c, struct buf *out, struct view column,
				 int level, size_t most);
void store_codec_end(struct buf *out);

/* Whether its checksum is right. */
bool store_codec_is_whole(struct view block);

/* Reading. */
struct store_cursor {
	const uint8_t *at;
	const uint8_t *end;
};
int store_codec_open(struct view block, enum store_codec_kind kind, struct store_cursor *ret_body);
/* The next column of the body, in memory slot number slot; -EBADMSG, -ENOMEM. */
int store_codec_get_column(struct store_codec *c, struct store_cursor *body, unsigned int slot,
			   struct store_cursor *ret_column);
int store_codec_skip_column(struct store_cursor *body);

static inline size_t store_cursor_left(const struct store_cursor *c)
{
	return (size_t)(c->end - c->at);
}

static inline bool store_cursor_varint_long(struct store_cursor *c, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;

		if (shift == 63 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* Nearly all have one byte to three. */
static inline bool store_cursor_varint(struct store_cursor *c, uint64_t *ret)
{
	const uint8_t *p = c->at;

	if (store_cursor_left(c) < 3 || (p[0] & p[1] & p[2] & 0x80))
		return store_cursor_varint_long(c, ret);
	if (p[0] < 0x80) {
		*ret = p[0];
		c->at = p + 1;
	} else if (p[1] < 0x80) {
		*ret = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
		c->at = p + 2;
	} else {
		*ret = (uint64_t)(p[0] & 0x7f) | (uint64_t)(p[1] & 0x7f) << 7 |
		       (uint64_t)p[2] << 14;
		c->at = p + 3;
	}
	return true;
}

static inline uint64_t store_zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t store_unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ -(v & 1));
}
