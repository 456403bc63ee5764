/*
 * src/proc/lock.h: which sonde works on a process.
 *
 * A lock is the name of an abstract socket, so it ends with its holder in any case. A process has
 * one lock per kind of work.
 */
#pragma once

#include "base/err.h"
#include "proc/id.h"

/* Returns a descriptor; close it when done. -EBUSY if another sonde holds the lock. */
int proc_lock(const struct proc_id *id, const char *work, int *ret_fd, struct err *err);
