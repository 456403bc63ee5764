/*
 * src/pipeline/outbox.h: a sink's own queue and thread.
 *
 * Putting never waits. A queue that is full loses its oldest record, which is counted and shown: a
 * gap of a sink that cannot keep up. Records wait for a flush, or until there are enough of them to
 * be worth waking the thread.
 *
 * Messages of remote sinks lie in a spool on disk (spool.h), which outlives us, until a second
 * thread has brought them away: the oldest first, and again after a second to a minute for as long
 * as the other side cannot be reached.
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
	/* Of remote sinks: a folder of its own that only we may write to, and its limit. */
	const char *spool_dir;
	uint64_t spool_max_bytes;
};

/* Takes over the sink, also when it fails. */
int outbox_open(const struct sink_row *row, const struct outbox_config *config,
		struct outbox **ret_outbox, struct err *err);
/* Keeps a reference of its own. Never waits. */
void outbox_put(struct outbox *outbox, struct record *record);
/* What was put so far is to be written now, without a flush. Never waits. */
void outbox_hurry(struct outbox *outbox);
/* What was put so far is to be flushed. Never waits. */
void outbox_flush(struct outbox *outbox);
/*
 * Ends the threads, which write what is queued until then, and send as much as goes well in half of
 * that time; closes the sink. A sink that hangs is left behind with all it uses: false.
 */
bool outbox_close(struct outbox *outbox, uint64_t until_ns);

struct outbox_status {
	const char *name;
	uint64_t written;  /* records; of remote sinks, sent */
	uint64_t dropped;  /* records, for want of memory or disk, or refused */
	uint64_t failures; /* calls of the sink that failed */
	uint64_t queued;   /* records that wait in memory */
	uint64_t queued_bytes;
	uint64_t spooled; /* messages that wait on disk */
	uint64_t spooled_bytes;
	uint64_t spool_lost; /* messages that had no room there, or were damaged */
	uint64_t lag_ns;     /* how long the oldest of all these has waited */
	bool unflushed;	     /* something was put after the last flush was asked for */
	bool settled;	     /* all that was asked for was flushed */
	char trouble[256];   /* of the last call that failed; "" when all is well */
};
void outbox_status(struct outbox *outbox, struct outbox_status *ret_status);
