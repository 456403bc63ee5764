/*
 * src/golang/metrics/metrics.h: Go runtime statistics, read from its variables: those of
 * runtime.ReadMemStats and runtime/metrics that have stayed stable over releases.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "golang/process.h"

struct golang_metrics_reader; /* opaque */

/* Which of the fields below are known for this release. */
enum {
	GOLANG_HAS_GC = 1 << 0,	   /* gc_count ... gc_cpu_fraction */
	GOLANG_HAS_HEAP = 1 << 1,  /* heap_live, heap_goal, gc_percent */
	GOLANG_HAS_LIMIT = 1 << 2, /* memory_limit, total_alloc ... mapped_ready: 1.19+ */
	GOLANG_HAS_SCHED = 1 << 3, /* goroutines, gomaxprocs */
};

struct golang_metrics {
	uint32_t has;
	uint64_t gc_count;
	uint64_t gc_forced_count;
	uint64_t gc_pause_total_ns;
	uint64_t gc_last_pause_ns;
	uint64_t gc_last_end_unix_ns;
	double gc_cpu_fraction;
	uint64_t heap_live_bytes;
	uint64_t heap_marked_bytes;
	uint64_t heap_goal_bytes;
	int32_t gc_percent; /* -1: off */
	int64_t memory_limit_bytes;
	uint64_t total_alloc_bytes;
	uint64_t total_free_bytes;
	uint64_t heap_inuse_bytes;
	uint64_t heap_released_bytes;
	uint64_t mapped_ready_bytes;
	uint64_t goroutines;
	uint32_t gomaxprocs;
	uint64_t pauses_ns[256]; /* newest last */
	uint32_t n_pauses;
	/* Why a group is missing: static texts, NULL if it is there. */
	const char *no_gc;
	const char *no_heap;
	const char *no_sched;
};

/* What is missing and why, for people: "garbage collections unknown: ..."; "" if nothing is. */
void golang_metrics_describe_missing(const struct golang_metrics *metrics, char *dst, size_t len);

/* Borrows process. -ENOTSUP: no variables found. */
int golang_metrics_new(struct golang_process *process, struct golang_metrics_reader **ret_reader,
		       struct err *err);
void golang_metrics_free(struct golang_metrics_reader *reader);
DEFINE_CLEANUP(struct golang_metrics_reader, golang_metrics_free)

/*
 * Two system calls, unless a garbage collection ends meanwhile; related values are read together.
 * Figures that contradict each other, or an earlier reading, are left out, with the reason.
 */
int golang_metrics_read(struct golang_metrics_reader *reader, struct golang_metrics *ret_metrics,
			struct err *err);
