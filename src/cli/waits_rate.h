/* src/cli/waits_rate.h: holding the rate of a block or mutex profile in a target for a while. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/contention.h"
#include "proc/id.h"

struct waits_rate {
	int lock; /* a socket, or -1 */
	struct golang_contention *contention;
	int64_t old;
	int64_t ours;
	sigset_t mask; /* as it was before */
};

#define WAITS_RATE_NONE ((struct waits_rate){.lock = -1})

/* See golang/force.h. -EBUSY when another sonde is at work on the program. */
int waits_rate_lock(struct waits_rate *rate, const struct proc_id *id, struct err *err);
/*
 * Writes the rate into the target. SIGPIPE waits from then on until the release: a reader of our
 * notes that has left must not leave the target changed.
 */
int waits_rate_hold(struct waits_rate *rate, struct golang_contention *contention, int64_t old,
		    int64_t ours, struct err *err);
/* Sets the old rate back if it is held, unless somebody else has changed it since; says so when it
 * cannot. */
void waits_rate_release(struct waits_rate *rate);
