/*
 * src/cli/heap_wait.h: waiting between two readings, and holding a sampling rate in the target
 * while we do.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/heap.h"
#include "proc/id.h"

/* Waits with progress on a terminal. -EINTR after a signal (cli/stop.h), -ESRCH when the process
 * ended. */
int heap_wait(const char *what, uint64_t ns, const struct proc_id *id, struct err *err);

struct heap_rate {
	int lock; /* a socket, or -1 */
	struct golang_heap *heap;
	int64_t old;
	int64_t ours;
	bool held;
	sigset_t mask; /* as it was before */
};

#define HEAP_RATE_NONE ((struct heap_rate){.lock = -1})

/* See golang/force.h. -EBUSY when another sonde is at work on the program. */
int heap_rate_lock(struct heap_rate *rate, const struct proc_id *id, struct err *err);
/*
 * Writes the rate into the target and scales by it. SIGPIPE waits from then on until the release:
 * a reader of our notes that has left must not leave the target changed.
 */
int heap_rate_hold(struct heap_rate *rate, struct golang_heap *heap, int64_t old, int64_t ours,
		   struct err *err);
/* Sets the old rate back if it is held, unless somebody else has changed it since; says so when it
 * cannot. */
void heap_rate_release(struct heap_rate *rate);
