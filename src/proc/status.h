/* src/proc/status.h: whose process it is, from /proc/PID/status. Reading it never waits for it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* More would be unusual; whoever has them gets only what these give. */
#define PROC_STATUS_GROUPS_MAX 256

struct proc_status {
	uid_t uid; /* real */
	uid_t euid;
	uid_t suid; /* saved */
	uid_t fsuid;
	gid_t egid;
	gid_t fsgid;
	gid_t groups[PROC_STATUS_GROUPS_MAX];
	size_t n_groups;
	pid_t inner_pid; /* in its own namespace */
	uint64_t caught; /* signals */
	char state;
	uint64_t switches; /* of its CPU, by the thread that is the process: grows whenever it runs
			    */
};

/* -ESRCH if it has exited. */
int proc_status_read(pid_t pid, struct proc_status *ret_status, struct err *err);
/* Its text; -EBADMSG if a line is missing or odd. */
int proc_status_parse(const char *text, struct proc_status *ret_status);
