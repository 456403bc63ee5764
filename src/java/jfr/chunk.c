/* src/java/jfr/chunk.c: see chunk.h. */
#include "java/jfr/chunk.h"

#include <errno.h>

#include "java/jfr/cursor.h"

#define NS_PER_SECOND INT64_C(1000000000)
#define CHUNK_FLAG_SHORT_NUMBERS 1

static int check(const struct java_jfr_chunk *c, uint8_t flags, struct err *err)
{
	if (c->major != 1 && c->major != 2)
		return err_lack(
			err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION, "",
			"is a recording of version %u.%u; only versions 1 and 2 are supported",
			c->major, c->minor);
	if (!(flags & CHUNK_FLAG_SHORT_NUMBERS))
		return err_set(err, -ENOTSUP, "uses fixed-length numbers, which are not supported");
	if (c->ticks_per_second <= 0)
		return err_set(err, -EBADMSG, "does not describe its clock");
	if (c->size < JAVA_JFR_HEADER_BYTES || c->metadata >= c->size || c->checkpoint >= c->size ||
	    (c->metadata && c->metadata < JAVA_JFR_HEADER_BYTES) ||
	    (c->checkpoint && c->checkpoint < JAVA_JFR_HEADER_BYTES))
		return err_set(err, -EBADMSG, "has a malformed header");
	return 0;
}

int java_jfr_chunk_parse(struct view bytes, struct java_jfr_chunk *ret_chunk, struct err *err)
{
	struct java_jfr_cursor c = java_jfr_cursor_of(bytes);
	struct java_jfr_chunk chunk;
	uint8_t flags;
	int r;

	if (bytes.len < JAVA_JFR_HEADER_BYTES || java_jfr_big_endian(&c, 4) != 0x464c5200)
		return err_set(err, -EBADMSG, "is not a JFR recording");
	chunk.major = (uint16_t)java_jfr_big_endian(&c, 2);
	chunk.minor = (uint16_t)java_jfr_big_endian(&c, 2);
	chunk.size = java_jfr_big_endian(&c, 8);
	chunk.checkpoint = java_jfr_big_endian(&c, 8);
	chunk.metadata = java_jfr_big_endian(&c, 8);
	chunk.start_ns = (int64_t)java_jfr_big_endian(&c, 8);
	chunk.duration_ns = (int64_t)java_jfr_big_endian(&c, 8);
	chunk.start_ticks = (int64_t)java_jfr_big_endian(&c, 8);
	chunk.ticks_per_second = (int64_t)java_jfr_big_endian(&c, 8);
	chunk.state = java_jfr_byte(&c);
	(void)java_jfr_big_endian(&c, 2);
	flags = java_jfr_byte(&c);
	if (chunk.state != JAVA_JFR_STATE_REWRITTEN) {
		r = check(&chunk, flags, err);
		if (r < 0)
			return r;
	}
	*ret_chunk = chunk;
	return 0;
}

bool java_jfr_chunk_is_readable(const struct java_jfr_chunk *c)
{
	return c->metadata != 0;
}

int64_t java_jfr_chunk_ns(const struct java_jfr_chunk *c, int64_t ticks)
{
	__int128 ns = (__int128)ticks * NS_PER_SECOND / c->ticks_per_second;

	return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}
