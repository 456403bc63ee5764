/*
 * src/golang/rates.h: setting a sampling rate in a program for a while, and setting it back.
 *
 * It is the only thing that writes into a target, and happens only where the user asks for it. Two
 * of us at work on one program would each take the other's rate for the old one, so whoever sets
 * one first takes the program's lock (proc/lock.h). The old rate is in the journal before the new
 * one is in the program: after a kill -9 the next sonde sets it back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/contention.h"
#include "golang/heap.h"
#include "golang/rate_journal.h"
#include "proc/id.h"

/* The rate that a program samples its heap by unless it says otherwise. */
#define GOLANG_DEFAULT_RATE 524288

/* Which rate of which program: of one of the two, borrowed. */
struct golang_rate_of {
	struct golang_heap *heap;
	struct golang_contention *contention;
};

/* A rate that is ours. */
struct golang_rate_hold {
	const struct golang_rate_journal *journal; /* borrowed */
	struct golang_rate_of of;
	struct golang_rate_note note; /* .old: the rate as it was */
	int lock;		      /* a socket, or -1: nothing is held */
};

#define GOLANG_RATE_HOLD_NONE ((struct golang_rate_hold){.lock = -1})

/*
 * Writes the rate into the program. What a sonde that was killed has left there is set back first.
 * -EBUSY when another sonde is at work on the program. hold is as it was on failure.
 */
int golang_rate_hold(struct golang_rate_hold *hold, const struct golang_rate_journal *journal,
		     struct golang_rate_of of, const struct proc_id *id, int64_t rate,
		     struct err *err);
/*
 * Sets the old rate back, unless the program has changed it since: then that is in *ret_now, and 1
 * is returned. -ESRCH when it has ended: it needs none. What fails otherwise stays noted, for the
 * next sonde. Nothing is held any more in any case.
 */
int golang_rate_release(struct golang_rate_hold *hold, int64_t *ret_now, struct err *err);
/* Ours stays, as the user wants it. */
void golang_rate_keep(struct golang_rate_hold *hold);

/*
 * Sets back what a sonde that was killed has left: only in the very address space that was noted,
 * and only where the value is still ours. What cannot be set back now stays noted; so does what
 * another sonde is at work on. Returns how many notes are settled.
 */
int golang_rates_restore(const struct golang_rate_journal *journal, struct err *err);
