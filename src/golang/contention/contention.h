/*
 * src/golang/contention/contention.h: the block and mutex profiles of a Go program from outside, if
 * it has turned them on: contentions/count and delay/nanoseconds, as runtime/pprof would write
 * them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "golang/process.h"
#include "profile/profile.h"

struct golang_contention; /* opaque */

enum golang_contention_kind { GOLANG_BLOCK, GOLANG_MUTEX };

struct golang_contention_stats {
	uint64_t buckets;
	uint64_t bad_buckets;
	uint64_t torn_records; /* changed in every attempt: shown, off by one event at most */
	bool incomplete;
	uint64_t unknown_frames;
	int64_t rate;		 /* blockprofilerate (in ticks) or mutexprofilerate; 0: off */
	double ticks_per_second; /* of the clock of delays; 0: not needed yet */
	const char *ticks_how;	 /* "the program's own", "measured since its start", ... */
};

/* Borrows process. -ENOTSUP: variables not found, with the reason. */
int golang_contention_new(struct golang_process *process, enum golang_contention_kind kind,
			  struct golang_contention **ret_contention, struct err *err);
void golang_contention_free(struct golang_contention *contention);
DEFINE_CLEANUP(struct golang_contention, golang_contention_free)

int golang_contention_read(struct golang_contention *contention, struct err *err);
/* Cumulative, since the program started to record. */
int golang_contention_profile(struct golang_contention *contention, struct profile **ret_profile,
			      struct err *err);
/* Since the previous call; the first is a baseline of zeros. Like golang_heap_delta_profile(). */
int golang_contention_delta_profile(struct golang_contention *contention,
				    struct profile **ret_profile, struct err *err);
const struct golang_contention_stats *
golang_contention_stats(const struct golang_contention *contention);

int golang_contention_rate(struct golang_contention *contention, int64_t *ret_rate,
			   struct err *err);
/*
 * The rate to write for "about one event per this many nanoseconds blocked" (block only), computed
 * as in runtime.SetBlockProfileRate.
 */
int golang_contention_block_rate(struct golang_contention *contention, uint64_t ns,
				 int64_t *ret_rate, struct err *err);
