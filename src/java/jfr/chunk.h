/*
 * src/java/jfr/chunk.h: the header of a chunk.
 *
 *    0 "FLR\0"      4 major, minor     8 size           16 last checkpoint   24 metadata
 *   32 start, ns   40 duration, ns    48 start, ticks   56 ticks per second
 *   64 state: 0 finished, 1 to 254 which flush, 255 being rewritten    67 flags: 1 short numbers
 */
#pragma once

#include "base/err.h"
#include "base/view.h"

#define JAVA_JFR_HEADER_BYTES 68
#define JAVA_JFR_STATE_OFFSET 64
#define JAVA_JFR_STATE_FINISHED 0
#define JAVA_JFR_STATE_REWRITTEN 255

struct java_jfr_chunk {
	uint16_t major, minor;
	uint64_t size;
	uint64_t checkpoint; /* offsets in the chunk; 0 for none */
	uint64_t metadata;
	int64_t start_ns, duration_ns;
	int64_t start_ticks, ticks_per_second;
	uint8_t state;
};

/* -EBADMSG, -ENOTSUP. If the header is complete, offsets are checked against the size. */
int java_jfr_chunk_parse(struct view bytes, struct java_jfr_chunk *ret_chunk, struct err *err);
/* Whether there is metadata; without it nothing is readable. */
bool java_jfr_chunk_is_readable(const struct java_jfr_chunk *c);
/* Converts ticks of this chunk to ns, clamped to int64_t. */
int64_t java_jfr_chunk_ns(const struct java_jfr_chunk *c, int64_t ticks);
