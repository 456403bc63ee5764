/*
 * src/cli/go/rate.h: a rate that a command forces in a Go process while it reads.
 *
 * It is noted in the data directory (SONDE_DATA_DIR), where `sonde run` finds it if we are killed.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/rates/rates.h"

struct go_rate {
	struct golang_rate_journal *journal;
	struct golang_rate_hold hold;
	const char *name; /* "sampling rate", for messages */
	bool keep;	  /* do not restore it */
	sigset_t mask;	  /* the original mask */
};

#define GO_RATE_NONE(word, stays)                                                                  \
	((struct go_rate){.hold = GOLANG_RATE_HOLD_NONE, .name = (word), .keep = (stays)})

/* Before the rate is read: restores what a killed sonde has left, in any process. */
int go_rate_prepare(struct go_rate *rate, struct err *err);
/*
 * Writes the rate into the process; the old one is in rate->hold.note. Blocks SIGPIPE until the
 * release: a reader that closes our output must not leave the target changed.
 */
int go_rate_force(struct go_rate *rate, struct golang_rate_of of, const struct proc_id *id,
		  int64_t ours, struct err *err);
/* Restores the rate if held, and reports it, or a failure. */
void go_rate_release(struct go_rate *rate);

/* Whether there is something to restore, by the journal in that directory. */
bool go_rates_are_noted(const char *dir);
/* As golang_rates_restore(), with the journal in that directory. */
int go_rates_restore(const char *dir, struct err *err);
