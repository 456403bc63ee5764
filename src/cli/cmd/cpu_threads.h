/* src/cli/cmd/cpu_threads.h: threads as frames, for formats without labels. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "profile/profile.h"

/*
 * Returns a copy with the label "thread" of each sample as outermost frame; below_process: as
 * second frame, after the process.
 */
int cmd_cpu_threads_as_frames(const struct profile *profile, bool below_process,
			      struct profile **ret_profile, struct err *err);
