/*
 * src/golang/heap.h: the Go heap profile from outside, as runtime/pprof would write it.
 *
 * A reader keeps what it has learned (buckets never move), so that a later reading costs four
 * system calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "golang/process.h"
#include "profile/profile.h"

struct golang_heap; /* opaque */

/* What one reading saw and lost. */
struct golang_heap_stats {
	uint64_t buckets;      /* accepted */
	uint64_t bad_buckets;  /* refused: wrong hash, wild pointer, absurd depth; the list ends
				  there if its link is lost */
	uint64_t torn_records; /* counters that did not agree with each other in any try */
	bool incomplete;       /* the list broke off: older buckets are missing */
	bool mixed;	       /* GC cycles moved in every try: values of two cycles may be mixed */
	uint64_t retries;      /* passes repeated because a GC cycle moved underneath */
	uint64_t unknown_frames; /* addresses without a name */
	uint64_t cycle;
	int64_t rate;	      /* MemProfileRate now */
	bool before_first_gc; /* nothing was published yet: all cycles were added up */
};

/* Borrows process, which must live longer. */
int golang_heap_new(struct golang_process *process, struct golang_heap **ret_heap, struct err *err);
void golang_heap_free(struct golang_heap *heap);
DEFINE_CLEANUP(struct golang_heap, golang_heap_free)

/* Reads the buckets once, consistently: all values of one GC cycle. -ESRCH when the target went
 * away or exec'd. */
int golang_heap_read(struct golang_heap *heap, struct err *err);
/* Builds the profile of the last reading: types alloc_objects, alloc_space, inuse_objects,
 * inuse_space. */
int golang_heap_profile(struct golang_heap *heap, struct profile **ret_profile, struct err *err);
/*
 * The last reading as the change since the previous call: alloc_* are differences of the scaled
 * cumulative values, bucket by bucket, so that all deltas add up exactly to the last cumulative
 * profile minus the first; inuse_* are absolute. Buckets without any value are left out.
 *
 * The first call is the baseline: its alloc_* are all zero. So are those of the first call after
 * the sampling rate has changed, because values of two rates cannot be subtracted. Buckets that
 * appear later count in full; one that could not be read keeps its base, and its change comes
 * later. No delta is negative.
 *
 * It is made to be summed over time and processes: it has neither mappings nor the label with the
 * size. A stack is looked up in the first delta that has it, and never again.
 */
int golang_heap_delta_profile(struct golang_heap *heap, struct profile **ret_profile,
			      struct err *err);
/*
 * One pass over the memory of a program that is about to end: nothing is repeated, and what cannot
 * be read any more stays as it was read before. An error says that some of it, or all, is older.
 * Stacks that are new are looked up at once, unless there are very many: tables can be in memory
 * only.
 */
int golang_heap_read_last(struct golang_heap *heap, struct err *err);
/*
 * What fills the memory as of the last reading: types inuse_objects and inuse_space. Unlike in a
 * profile, what was allocated after the last GC cycle is in it: it takes memory, too, and where
 * memory runs out it is what matters. Leaves deltas as they are.
 */
int golang_heap_picture(struct golang_heap *heap, struct profile **ret_profile, struct err *err);
/* Gives back what only the next reading needs, and can read again. */
void golang_heap_trim(struct golang_heap *heap);
const struct golang_heap_stats *golang_heap_stats(const struct golang_heap *heap);

/* MemProfileRate, now. 0 means that the program does not sample. */
int golang_heap_rate(struct golang_heap *heap, int64_t *ret_rate, struct err *err);
/* Scale by this rate instead of the current one (after the rate was set back). 0: the current one.
 */
void golang_heap_scale_by(struct golang_heap *heap, int64_t rate);
