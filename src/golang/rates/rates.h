/*
 * src/golang/rates/rates.h: forces a sampling rate in a process for a while, and restores it.
 *
 * This is the only code that writes into a target, and only on request. Two sondes working on one
 * process would each take the other's rate for the old one, so each first takes the process's lock
 * (proc/lock.h). The old rate is in the journal before the new one is in the process: after a kill
 * -9 the next sonde restores it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/contention/contention.h"
#include "golang/heap/heap.h"
#include "golang/rates/journal.h"
#include "proc/id.h"

/* Go's default heap sampling rate. */
#define GOLANG_DEFAULT_RATE 524288

/* Which rate of which process: one of the two, borrowed. */
struct golang_rate_of {
	struct golang_heap *heap;
	struct golang_contention *contention;
};

/* A forced rate. */
struct golang_rate_hold {
	const struct golang_rate_journal *journal; /* borrowed */
	struct golang_rate_of of;
	struct golang_rate_note note; /* .old: the original rate */
	int lock;		      /* a socket, or -1: nothing is held */
};

#define GOLANG_RATE_HOLD_NONE ((struct golang_rate_hold){.lock = -1})

/*
 * Writes the rate into the process; first restores what a killed sonde has left there. -EBUSY if
 * another sonde is working on it. hold is unchanged on failure.
 */
int golang_rate_hold(struct golang_rate_hold *hold, const struct golang_rate_journal *journal,
		     struct golang_rate_of of, const struct proc_id *id, int64_t rate,
		     struct err *err);
/*
 * Restores the old rate, unless the program has changed it since: then returns 1 with its rate in
 * *ret_now. -ESRCH if the process has exited, which is fine. After any other failure the note stays
 * for the next sonde. Nothing is held afterwards in any case.
 */
int golang_rate_release(struct golang_rate_hold *hold, int64_t *ret_now, struct err *err);
/* Leaves our rate in place, on request. */
void golang_rate_keep(struct golang_rate_hold *hold);

/*
 * Restores what killed sondes have left: only in the noted address space, and only if the value is
 * still ours. What cannot be restored now stays noted, as does what another sonde is working on.
 * Returns how many notes were settled.
 */
int golang_rates_restore(const struct golang_rate_journal *journal, struct err *err);
