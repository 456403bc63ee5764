/*
 * src/proc/caps.h: gives up privileges. Each thread has its own, and hands them to the threads and
 * processes that it starts.
 */
#pragma once

#include <linux/capability.h>
#include <stdint.h>

#include "base/err.h"

#define PROC_CAP(cap) (1ULL << (cap))

/* Those in effect for the calling thread. */
uint64_t proc_caps_now(void);
/*
 * What a thread must keep that reads other processes and needs these besides. Without
 * CAP_SYS_PTRACE that is all it has: then the kernel lets it read only who has no more.
 */
uint64_t proc_caps_to_read(uint64_t caps);
/*
 * The calling thread keeps only these, of those that it has, and can never have others: by no
 * program that it starts, either.
 */
int proc_caps_keep(uint64_t caps, struct err *err);
