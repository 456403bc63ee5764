/* src/golang/contention/state.h: shared by the files of block and mutex profiles. */
#pragma once

#include "golang/buckets/buckets.h"
#include "golang/contention/contention.h"
#include "golang/contention/vars.h"
#include "golang/profiles.h"

/* What a bucket held as of the last delta: raw, for the clock's rate may become better known. */
struct golang_contention_base {
	bool known; /* a bucket that is not counts in full */
	double count;
	int64_t cycles;
};

struct golang_contention {
	struct golang_process *process; /* borrowed */
	enum golang_contention_kind kind;
	struct golang_contention_vars vars;
	struct golang_buckets buckets;
	struct golang_contention_stats stats;
	uint32_t max_depth; /* of stacks that runtime/pprof shows */
	struct golang_contention_base *bases;
	size_t n_bases;
	bool has_base;
	struct golang_stack_cache names; /* of the stacks that were in deltas, from the oldest on */
};

/* runtime.ticks as it lies in the target. */
struct golang_contention_ticks {
	int64_t start_ticks; /* 0 where a release has none */
	int64_t start_time_ns;
	int64_t per_second; /* 0 until the program itself needs it */
};

/* Finds out how fast the program's clock ticks, and keeps it in stats. */
int golang_contention_clock(struct golang_contention *c, struct err *err);

/*
 * The entries of a stack as runtime.CallersFrames gives them: since 1.23 stacks have only the
 * return addresses of physical frames, and the calls inlined there are put between them. Returns
 * how many there are, at most max.
 */
size_t golang_contention_expand(struct golang_process *process, const uint64_t *pcs, size_t n,
				uint64_t *ret_pcs, size_t max);
