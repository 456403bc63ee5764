/* src/cli/cpu_threads.h: threads for formats that have no labels. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "profile/profile.h"

/*
 * A copy in which the name of a sample's thread, its label "thread", is the outermost frame of its
 * stack; below_process: the one after that, because the process is there already.
 */
int cpu_threads_as_frames(const struct profile *profile, bool below_process,
			  struct profile **ret_profile, struct err *err);
