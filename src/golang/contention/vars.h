/*
 * src/golang/contention/vars.h: addresses of the runtime's block or mutex profile.
 *
 * Found by symbol or, in stripped programs, by the references of functions, as in
 * golang/binary/vars.h; verified by contents: a list of buckets points to a bucket of its kind.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/process_state.h"

struct golang_contention_vars {
	uint64_t buckets;     /* *bucket: runtime.bbuckets or runtime.xbuckets */
	uint64_t rate;	      /* i64: runtime.blockprofilerate or runtime.mutexprofilerate */
	uint64_t ticks;	      /* runtime.ticks; 0 if not linked into the program */
	uint64_t stack_depth; /* i32: runtime.debug.profstackdepth; 0 if unknown, or < 1.23 */
};

/* runtime.ticks; runtime/runtime.go. Offsets from its start, -1 for what a release lacks. */
struct golang_ticks_layout {
	int start_ticks;
	int start_time;
	int value;
};

struct golang_ticks_layout golang_ticks_layout(unsigned int minor);

/* typ is GOLANG_BUCKET_BLOCK or GOLANG_BUCKET_MUTEX. -ENOTSUP names what is missing. */
int golang_contention_vars_find(struct golang_process *process, uint64_t typ,
				struct golang_contention_vars *ret_vars, struct err *err);
