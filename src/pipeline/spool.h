/*
 * src/pipeline/spool.h: messages on disk that wait for a remote sink, first in, first out.
 *
 * A folder of segments, NUMBER.spool with 16 digits. A segment is a head and messages, appended:
 *
 *   head     "sondespl" | u32 version | u32 crc32c of the 12 bytes before
 *   message  u32 length | u32 crc32c of the bytes | bytes
 *
 * Integers are little-endian. Where reading ended is a file of its own, `position`, replaced by
 * rename: u64 segment | u64 offset | u32 crc32c. After a kill -9 the last message may be torn: it
 * is cut off and counted. A message may be sent twice, never lost before it was sent, unless the
 * limit is reached: then the oldest segment goes, and what was in it is counted.
 *
 * One user at a time: the folder is locked. Not safe from several threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"

#define SPOOL_MAX_MESSAGE ((size_t)32 << 20)

struct spool; /* opaque */

struct spool_config {
	const char *dir;	/* made if it is not there; must be ours alone */
	uint64_t max_bytes;	/* on disk */
	uint64_t segment_bytes; /* 0: a sixteenth of max_bytes, at most 8 MB */
};

/* -EPERM when the folder is not ours alone, -EBUSY when another process uses it. */
int spool_open(const struct spool_config *config, struct spool **ret_spool, struct err *err);
void spool_close(struct spool *spool);
DEFINE_CLEANUP(struct spool, spool_close)

/*
 * Durable after spool_sync(). -E2BIG for a message that could never fit, -EINVAL for an empty one,
 * -ENOSPC on a full disk where nothing older can make room: later there may be some again.
 */
int spool_append(struct spool *spool, struct view message, struct err *err);
int spool_sync(struct spool *spool, struct err *err);
/* The oldest message. 1, or 0 when there is none. What is damaged is skipped and counted. */
int spool_peek(struct spool *spool, struct buf *ret_message, struct err *err);
/*
 * The one that was peeked last was brought away; nothing happens where the limit took it since. An
 * error means that it may come again after the next open.
 */
int spool_pop(struct spool *spool, struct err *err);

struct spool_status {
	uint64_t bytes;	   /* on disk */
	uint64_t messages; /* that wait */
	uint64_t dropped;  /* messages lost to the limit, since it was opened */
	uint64_t damaged;  /* messages that could not be read back */
};
void spool_status(const struct spool *spool, struct spool_status *ret_status);
