/*
 * src/agent/schedule/builds.h: which build of its executable a process runs, as the linker has
 * noted it in the file.
 *
 * Many processes run the same file, so what was read of it is kept. The file is the one that the
 * kernel runs, whatever its name leads to by now.
 */
#pragma once

#include "agent/schedule/processes.h"

struct agent_builds; /* for several threads at once */

struct agent_builds *agent_builds_new(void); /* NULL: no memory */
void agent_builds_free(struct agent_builds *builds);

/*
 * Sets build_id; "" if it cannot be read, or has none. True if the file had to be read for it. May
 * hang: for pool threads only.
 */
bool agent_builds_find(struct agent_builds *builds, const struct agent_processes_ops *procs,
		       struct proc_info *info);
