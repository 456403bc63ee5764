/* src/agent/sink.h: the seam between the loop and where readings go. */
#pragma once

#include "agent/reader.h"
#include "base/err.h"

struct sink; /* what an implementation keeps */

struct sink_ops {
	const char *name;
	int (*write)(struct sink *sink, const struct target *target,
		     const struct reader_ops *reader, const struct reading *reading,
		     struct err *err);
	int (*flush)(struct sink *sink, struct err *err); /* end of an interval */
	void (*close)(struct sink *sink);
};
