/*
 * src/pipeline/spool/spool.h: messages on disk that wait for a remote sink, first in, first out.
 *
 * A directory of segments, NUMBER.spool with 16 digits. A segment is a head and appended messages:
 *
 *   head     "sondespl" | u32 version | u32 crc32c of the preceding 12 bytes
 *   message  u32 length | u32 crc32c of the bytes | bytes
 *
 * Integers are little-endian. The read position is the file `position`, replaced by rename:
 * u64 segment | u64 offset | u32 crc32c. After a kill -9 the last message may be torn: it is
 * truncated and counted. A message may be sent twice, but is never lost before it was sent, unless
 * the limit is reached: then the oldest segment is removed, and its messages are counted.
 *
 * One user at a time: the directory is locked. Not thread-safe.
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
	const char *dir;	/* created if missing; must be private */
	uint64_t max_bytes;	/* on disk */
	uint64_t segment_bytes; /* 0: a sixteenth of max_bytes, at most 8 MB */
};

/* -EPERM if the directory is not private, -EBUSY if another process uses it. */
int spool_open(const struct spool_config *config, struct spool **ret_spool, struct err *err);
void spool_close(struct spool *spool);
DEFINE_CLEANUP(struct spool, spool_close)

/*
 * Durable after spool_sync(). -E2BIG for a message that can never fit, -EINVAL for an empty one,
 * -ENOSPC on a full disk if nothing older can be removed; retry later.
 */
int spool_append(struct spool *spool, struct view message, struct err *err);
int spool_sync(struct spool *spool, struct err *err);
/* The oldest message. 1, or 0 if there is none. Damaged ones are skipped and counted. */
int spool_peek(struct spool *spool, struct buf *ret_message, struct err *err);
/*
 * Removes the message peeked last; no-op if the limit already removed it. On error it may come
 * again after the next open.
 */
int spool_pop(struct spool *spool, struct err *err);

struct spool_status {
	uint64_t bytes;	   /* on disk */
	uint64_t messages; /* waiting */
	uint64_t dropped;  /* messages lost to the limit since the open */
	uint64_t damaged;  /* unreadable messages */
};
void spool_status(const struct spool *spool, struct spool_status *ret_status);
