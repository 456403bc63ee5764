/*
 * src/pipeline/sink.h: where records go: the store, the live values of /metrics, other systems.
 *
 * Calls come from threads of the sink's outbox (outbox.h): a sink may be slow, and nobody but its
 * own queue notices. They come one after the other, but for send(), which has a thread of its own
 * and may run at the same time as encode().
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/view.h"
#include "pipeline/record.h"

struct sink; /* what an implementation keeps */

struct sink_ops {
	const char *name; /* "store" */
	bool live;	  /* it shows records as they come, and does not wait for a flush */
	/* Local ones: takes what it needs of a record, which it may keep by record_ref(). */
	int (*write)(struct sink *sink, struct record *record, struct err *err);
	/* Makes durable or visible what was written; at the end of an interval, and in a hurry. */
	int (*flush)(struct sink *sink, struct err *err);
	/*
	 * Remote ones have these two instead. What encode() appends to out for the records of one
	 * flush is spooled on disk as one message; send() brings it there, and is called again with
	 * the same bytes, after a while, for as long as it returns -EAGAIN. What it refuses with
	 * another code is dropped and counted.
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
