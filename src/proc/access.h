/* src/proc/access.h: why the kernel denies reading a process, and the remedy. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* Always returns -EPERM; who names the process in the message. */
int proc_access_denied(pid_t pid, const char *who, struct err *err);
