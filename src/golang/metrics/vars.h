/*
 * src/golang/metrics/vars.h: addresses and layout of the runtime's own statistics.
 *
 * Found by symbol or, in stripped programs, by the references of functions, as in
 * golang/binary/vars.h. Each is verified by contents; a missing one does not affect the others.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "golang/process_state.h"

struct golang_metrics_vars {
	uint64_t memstats;   /* runtime.memstats; each is 0 if not found */
	uint64_t controller; /* runtime.gcController */
	uint64_t sched;	     /* runtime.sched */
	uint64_t allp;	     /* runtime.allp: a slice of *p */
	uint64_t allgs;	     /* runtime.allgs: a slice of *g */
};

/* Offsets of one release; see vars.c for the sources. -1 if it does not exist. */
struct golang_metrics_layout {
	unsigned int minor; /* the first release it applies to */

	/* runtime.mstats */
	int ms_buckhash_sys;
	int ms_gc; /* last_gc_unix: the first of a group whose order never changed, see metrics.c */

	/* runtime.gcControllerState; gcPercent comes first */
	int gc_memory_limit;
	int gc_heap_minimum;
	int gc_heap_goal; /* heapGoal, or gcPercentHeapGoal since 1.19 */
	int gc_sweep_dist_min_trigger;
	int gc_triggered;
	int gc_heap_live;
	int gc_heap_marked;
	int gc_heap_in_use; /* then heapReleased, heapFree, totalAlloc, totalFree, mappedReady */

	/* runtime.schedt */
	int sched_maxmcount;
	int sched_ngsys;
	int sched_gfree[2]; /* one count, and since 1.25 another of goroutines without a stack */

	/* runtime.p, runtime.g */
	int p_mcache;
	int p_gfree;
	int g_goid;
};

/* Enough of gcControllerState and schedt for every field above. */
#define GOLANG_CONTROLLER_BYTES 352
#define GOLANG_SCHED_BYTES 224

const struct golang_metrics_layout *golang_metrics_layout(unsigned int minor);

/* -ENOTSUP if none of them was found; -ESRCH. */
int golang_metrics_vars_find(struct golang_process *process, struct golang_metrics_vars *ret_vars,
			     struct err *err);
