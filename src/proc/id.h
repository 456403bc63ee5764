/*
 * src/proc/id.h: identifies a process.
 *
 * A pid alone gets reused; pid and start time do not. An exec keeps both and replaces the program;
 * struct proc_mem detects that (proc/mem.h).
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

/* -ESRCH if there is no such process, or it is a zombie; -ETIMEDOUT if it is not responding. */
int proc_id_of(pid_t pid, struct proc_id *ret_id, struct err *err);
/*
 * -ESRCH if it has exited, -ETIMEDOUT if it is not responding: that the pid still is this process
 * cannot be told then.
 */
int proc_id_check(const struct proc_id *id, struct err *err);
/* That it is there is proved; that it is not. Neither, if it is not responding. */
bool proc_id_alive(const struct proc_id *id);
bool proc_id_gone(const struct proc_id *id);
