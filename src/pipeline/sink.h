/*
 * src/pipeline/sink.h: where records go: the store, the live values of /metrics, other systems.
 *
 * All calls come from the sink's outbox (pipeline/outbox/outbox.h), so a slow sink delays only its
 * own queue. They come one at a time, except send(), which has its own thread and may run beside
 * encode().
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/view.h"
#include "pipeline/record.h"

struct sink; /* what an implementation keeps */

struct sink_ops {
	const char *name; /* "store" */
	bool live;	  /* shows records as they come, without waiting for a flush */
	/* Local sinks: copies what it needs, or keeps the record with record_ref(). */
	int (*write)(struct sink *sink, struct record *record, struct err *err);
	/* Makes writes durable or visible; at the end of an interval, and for urgent records. */
	int (*flush)(struct sink *sink, struct err *err);
	/*
	 * Remote sinks have these two instead. encode() appends the message for the records of one
	 * flush to out; it is spooled on disk. send() delivers it, and is retried with the same
	 * bytes as long as it returns -EAGAIN. On any other error the message is dropped and
	 * counted.
	 */
	int (*encode)(struct sink *sink, struct record *const *records, size_t n, struct buf *out,
		      struct err *err);
	int (*send)(struct sink *sink, struct view message, struct err *err);
	void (*close)(struct sink *sink);
};

/* A row of the table of sinks. */
struct sink_row {
	const struct sink_ops *ops;
	struct sink *sink;
};
