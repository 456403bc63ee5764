/*
 * src/proc/lock.h: who of us is at work on a process.
 *
 * A lock is the name of an abstract socket, which ends with its holder, however that ends. A
 * process has one for each kind of work.
 */
#pragma once

#include "base/err.h"
#include "proc/id.h"

/* A descriptor to close when the work is done. -EBUSY when another sonde holds the lock. */
int proc_lock(const struct proc_id *id, const char *work, int *ret_fd, struct err *err);
