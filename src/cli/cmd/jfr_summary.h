/* src/cli/cmd/jfr_summary.h: the contents of a recording as text: its profiles and events. */
#pragma once

#include "base/buf.h"
#include "java/jfr/jfr.h"
#include "java/jfr/profiler.h"

/* profiles: by kind. */
int jfr_summary(const char *name, const struct java_jfr *j, struct profile *const *profiles,
		const struct java_jfr_profiler_stats *stats, struct buf *out);
