/* src/cli/go/heap_rate.h: waits between two reads. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "proc/id.h"

/*
 * Waits, with progress on a terminal. -EINTR after a signal (cli/stop.h), -ESRCH if the process
 * exits.
 */
int heap_rate_wait(const char *what, uint64_t ns, const struct proc_id *id, struct err *err);
