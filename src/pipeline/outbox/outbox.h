/*
 * src/pipeline/outbox/outbox.h: the queue and thread of one sink.
 *
 * Putting never waits. A full queue drops its oldest record, which is counted and shown: a gap of a
 * sink that cannot keep up. Records wait for a flush, or until there are enough to be worth waking
 * the thread.
 *
 * Messages of remote sinks wait in a spool on disk (pipeline/spool/spool.h), which survives a
 * restart. A second thread sends them, oldest first. While the other side is unreachable, it
 * retries after a second, then less often, at least once a minute.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "pipeline/sink.h"

#define OUTBOX_MAX_BYTES ((size_t)16 << 20)

struct outbox; /* opaque */

struct outbox_config {
	size_t max_bytes; /* of records in memory; 0: OUTBOX_MAX_BYTES */
	/* Remote sinks only: a private directory, and its size limit. */
	const char *spool_dir;
	uint64_t spool_max_bytes;
};

/* Takes the sink, also on failure. */
int outbox_open(const struct sink_row *row, const struct outbox_config *config,
		struct outbox **ret_outbox, struct err *err);
/* Takes its own reference. Never waits. */
void outbox_put(struct outbox *outbox, struct record *record);
/* Has everything put so far written now, without a flush. Never waits. */
void outbox_hurry(struct outbox *outbox);
/* Has everything put so far flushed. Never waits. */
void outbox_flush(struct outbox *outbox);
/*
 * Ends the threads. Until then they write the queue, and spend up to half of the time on sending.
 * Closes the sink. False: the sink hangs, and is abandoned with everything it uses.
 */
bool outbox_close(struct outbox *outbox, uint64_t until_ns);

struct outbox_status {
	const char *name;
	uint64_t written;  /* records; of remote sinks, sent */
	uint64_t dropped;  /* records: out of memory or disk, or refused */
	uint64_t failures; /* failed calls of the sink */
	uint64_t queued;   /* records waiting in memory */
	uint64_t queued_bytes;
	uint64_t spooled; /* messages waiting on disk */
	uint64_t spooled_bytes;
	uint64_t spool_lost; /* messages over the limit, or damaged */
	uint64_t lag_ns;     /* age of the oldest of these */
	bool unflushed;	     /* something was put since the last flush was requested */
	bool settled;	     /* everything requested was flushed */
	char trouble[256];   /* of the last failed call; "" if all is well */
};
void outbox_status(struct outbox *outbox, struct outbox_status *ret_status);
