/* src/golang/contention/state.h: shared by the files of block and mutex profiles. */
#pragma once

#include "golang/buckets/buckets.h"
#include "golang/contention/contention.h"
#include "golang/contention/vars.h"
#include "golang/profiles.h"

/* A bucket as of the last delta: raw, because the clock's rate may become more precise. */
struct golang_contention_base {
	bool known; /* an unknown bucket counts in full */
	double count;
	int64_t cycles;
};

struct golang_contention {
	struct golang_process *process; /* borrowed */
	enum golang_contention_kind kind;
	struct golang_contention_vars vars;
	struct golang_buckets buckets;
	struct golang_contention_stats stats;
	uint32_t max_depth; /* of stacks as shown by runtime/pprof */
	struct golang_contention_base *bases;
	size_t n_bases;
	bool has_base;
	struct golang_stack_cache names; /* of the stacks in deltas, oldest first */
};

/* runtime.ticks, as laid out in the target. */
struct golang_contention_ticks {
	int64_t start_ticks; /* 0 if the release has none */
	int64_t start_time_ns;
	int64_t per_second; /* 0 until the program itself needs it */
};

/* Determines the rate of the program's clock, and stores it in stats. */
int golang_contention_clock(struct golang_contention *c, struct err *err);

/*
 * The entries of a stack as runtime.CallersFrames returns them: since 1.23 stacks have only the
 * return addresses of physical frames, so inlined calls are inserted between them. Returns how
 * many, at most max.
 */
size_t golang_contention_expand(struct golang_process *process, const uint64_t *pcs, size_t n,
				uint64_t *ret_pcs, size_t max);
