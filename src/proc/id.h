/*
 * src/proc/id.h: which process is meant.
 *
 * A pid alone is reused; pid and start time are not. An exec keeps both and replaces the
 * program: that is what struct proc_mem notices (proc/mem.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct proc_id {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
};

/* -ESRCH when there is no such process, or only its zombie. */
int proc_id_of(pid_t pid, struct proc_id *ret_id, struct err *err);
bool proc_id_alive(const struct proc_id *id);
