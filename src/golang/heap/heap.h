/*
 * src/golang/heap/heap.h: the Go heap profile from outside, as runtime/pprof would write it.
 *
 * A reader keeps what it has learned (buckets never move), so a later read takes four system calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "golang/process.h"
#include "profile/profile.h"

struct golang_heap; /* opaque */

/* What one read saw and lost. */
struct golang_heap_stats {
	uint64_t buckets;      /* accepted */
	uint64_t bad_buckets;  /* refused: wrong hash, wild pointer, absurd depth; the list ends
				  there if its link is lost */
	uint64_t torn_records; /* counters that were inconsistent in every attempt */
	bool incomplete;       /* the list is broken: older buckets are missing */
	bool mixed; /* the GC cycle advanced in every attempt: values of two cycles may be mixed */
	uint64_t retries;	 /* passes repeated because the GC cycle advanced */
	uint64_t unknown_frames; /* addresses without a name */
	uint64_t cycle;
	int64_t rate;	      /* MemProfileRate now */
	bool before_first_gc; /* nothing published yet: the sum of all cycles */
	uint64_t folded;      /* stacks that are "(other)" in the last delta or snapshot */
};

/* Borrows process, which must outlive it. */
int golang_heap_new(struct golang_process *process, struct golang_heap **ret_heap, struct err *err);
void golang_heap_free(struct golang_heap *heap);
DEFINE_CLEANUP(struct golang_heap, golang_heap_free)

/*
 * Reads the buckets consistently: all values of one GC cycle. -ESRCH if the target exited or
 * exec'd.
 */
int golang_heap_read(struct golang_heap *heap, struct err *err);
/*
 * Builds the profile of the last read: types alloc_objects, alloc_space, inuse_objects,
 * inuse_space.
 */
int golang_heap_profile(struct golang_heap *heap, struct profile **ret_profile, struct err *err);
/*
 * The change since the previous call. alloc_* are differences of the scaled cumulative values,
 * bucket by bucket, and of all allocations so far: unlike those of a profile, which become known
 * when a garbage collection has ended, they belong to the time of the delta. All deltas add up
 * exactly to the last cumulative values minus the first. inuse_* are absolute, and those of the
 * profile. Buckets without any value are omitted.
 *
 * The first call is the baseline: its alloc_* are all zero. So are those of the first call after
 * the sampling rate changed, because values of two rates cannot be subtracted. Buckets that appear
 * later count in full; an unreadable one keeps its base, and its change comes later. No delta is
 * negative.
 *
 * Made to be summed over time and processes: it has neither mappings nor the size label. A stack is
 * symbolized in the first delta that has it, and never again. Of more stacks than the maximum,
 * those with the most bytes are in it; the rest is "(other)".
 */
#define GOLANG_HEAP_MAX_STACKS 10000
int golang_heap_delta_profile(struct golang_heap *heap, struct profile **ret_profile,
			      struct err *err);
/*
 * One pass over the memory of a process about to die: nothing is retried, and what can no longer be
 * read keeps its old value. An error means that some or all of it is older. New stacks are
 * symbolized at once, unless there are very many: tables may exist in memory only.
 */
int golang_heap_read_last(struct golang_heap *heap, struct err *err);
/*
 * What fills memory as of the last read: types inuse_objects and inuse_space. Unlike a profile, it
 * includes allocations since the last GC cycle: they take memory too, and matter most when it runs
 * out. Does not affect deltas.
 */
int golang_heap_snapshot(struct golang_heap *heap, struct profile **ret_profile, struct err *err);
/* Frees what only the next read needs and can load again. */
void golang_heap_trim(struct golang_heap *heap);
const struct golang_heap_stats *golang_heap_stats(const struct golang_heap *heap);

/* The current MemProfileRate. 0: the program does not sample. */
int golang_heap_rate(struct golang_heap *heap, int64_t *ret_rate, struct err *err);
/* Scale by this rate instead of the current one (after it was restored). 0: the current one. */
void golang_heap_scale_by(struct golang_heap *heap, int64_t rate);
