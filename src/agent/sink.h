/* src/agent/sink.h: the seam between the loop and where readings go. All calls come from one
 * thread.
 */
#pragma once

#include "agent/reader.h"
#include "base/err.h"
#include "store/store.h"

struct sink; /* what an implementation keeps */

struct sink_ops {
	const char *name;
	/* family: of the streams, "go_heap" */
	int (*write)(struct sink *sink, const struct target *target, const char *family,
		     const struct reading *reading, struct err *err);
	int (*flush)(struct sink *sink, struct err *err); /* end of an interval */
	void (*close)(struct sink *sink);
};

/* A row of the table of sinks: the loop writes to each. */
struct sink_row {
	const struct sink_ops *ops;
	struct sink *sink;
};

#define SINKS_MAX 4

/* Writes to the store, commits and maintains it. Borrows the store. */
int sink_store_open(struct store *store, struct sink_row *ret_row, struct err *err);
