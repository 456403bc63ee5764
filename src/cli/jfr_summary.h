/* src/cli/jfr_summary.h: what is in a recording, as text: its profiles and its events. */
#pragma once

#include "base/buf.h"
#include "java/jfr.h"
#include "java/jfr_profile.h"

/* profiles: by kind. */
int jfr_summary(const char *name, const struct jfr *j, struct profile *const *profiles,
		const struct jfr_profiler_stats *stats, struct buf *out);
