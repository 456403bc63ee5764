/* src/proc/access.h: why the kernel does not let us read a process, and what would help. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* Always -EPERM; who names the process in the sentence. */
int proc_access_denied(pid_t pid, const char *who, struct err *err);
