/*
 * src/golang/force.h: who may change the sampling rate of a program.
 *
 * Two of us at work on one program would each take the other's rate for the old one. So whoever
 * changes it first takes a lock (proc/lock.h).
 */
#pragma once

#include "base/err.h"
#include "proc/id.h"

/* The rate that a program samples by unless it says otherwise. */
#define GOLANG_DEFAULT_RATE 524288

/* A descriptor to close when the rate is set back. -EBUSY when another sonde holds the lock. */
int golang_force_lock(const struct proc_id *id, int *ret_fd, struct err *err);
