/*
 * src/cli/go_rate.h: a rate that a command sets in a Go program for as long as it looks.
 *
 * What is changed is noted in the folder of the profiles (SONDE_DATA_DIR), where `sonde run` finds
 * it as well, should we be killed.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/rates.h"

struct go_rate {
	struct golang_rate_journal *journal;
	struct golang_rate_hold hold;
	const char *name; /* "sampling rate", for notes */
	bool keep;	  /* it is not set back */
	sigset_t mask;	  /* as it was before */
};

#define GO_RATE_NONE(word, stays)                                                                  \
	((struct go_rate){.hold = GOLANG_RATE_HOLD_NONE, .name = (word), .keep = (stays)})

/* Before the rate is looked at: sets back what a sonde that was killed has left, in any program. */
int go_rate_prepare(struct go_rate *rate, struct err *err);
/*
 * Writes the rate into the program; the old one is in rate->hold.note. SIGPIPE waits from then on
 * until the release: a reader of our notes that has left must not leave the target changed.
 */
int go_rate_force(struct go_rate *rate, struct golang_rate_of of, const struct proc_id *id,
		  int64_t ours, struct err *err);
/* Sets it back if it is held, and says so, also when it cannot. */
void go_rate_release(struct go_rate *rate);

/* As golang_rates_restore(), of the journal in that folder. */
int go_rates_restore(const char *dir, struct err *err);
