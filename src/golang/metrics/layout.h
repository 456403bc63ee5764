/* src/golang/metrics/layout.h: the memory layout of the runtime's statistics. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "golang/metrics/metrics.h"
#include "golang/metrics/vars.h"

/*
 * Part of runtime.mstats (runtime/mstats.go): the fields from last_gc_unix to gc_cpu_fraction have
 * the same order in all releases.
 */
struct golang_metrics_gc {
	uint64_t last_unix_ns;
	uint64_t pause_total_ns;
	uint64_t pauses_ns[256]; /* a ring: the newest is at (n_gc + 255) % 256 */
	uint64_t pause_ends[256];
	uint32_t n_gc;
	uint32_t n_forced;
	double cpu_fraction;
};

/* What a later reading must not fall behind. */
struct golang_metrics_gc_mark {
	bool valid;
	uint32_t n_gc;
	uint64_t pause_total_ns;
	uint64_t last_unix_ns;
};
struct golang_metrics_gc_mark golang_metrics_gc_mark(const struct golang_metrics_gc *gc);
/*
 * Why these are not the figures of a collector, or not of the one seen before (NULL: none was);
 * NULL if they are. They contradict each other for a moment while a collection ends: read again.
 */
const char *golang_metrics_gc_doubt(const struct golang_metrics_gc *gc,
				    const struct golang_metrics_gc_mark *before);

struct golang_metrics_slice {
	uint64_t data;
	uint64_t len;
	uint64_t cap;
};

/* GOMAXPROCS is at most 1024 times what any machine has; a g takes at least 400 bytes. */
#define GOLANG_METRICS_MAX_PS ((uint64_t)1 << 16)
#define GOLANG_METRICS_MAX_GS ((uint64_t)1 << 32)

static inline bool golang_metrics_slice_is_sane(const struct golang_metrics_slice *s, uint64_t max)
{
	return s->data && s->data % 8 == 0 && s->len > 0 && s->len <= s->cap && s->cap <= max;
}

/* The inputs of the heap goal in gcControllerState, and their release. */
struct golang_metrics_pacer {
	unsigned int minor;
	uint64_t percent_goal;
	uint64_t sweep_dist_min_trigger;
	uint64_t triggered;
	uint64_t memory_limit;
	uint64_t heap_marked;
	uint64_t heap_free;
	uint64_t heap_alloc;
	uint64_t mapped_ready;
};

/* 1.19+: the heap size at which the next collection ends, as computed by ReadMemStats. */
uint64_t golang_metrics_heap_goal(const struct golang_metrics_pacer *p);

/* A reader for known variables. */
int golang_metrics_reader_new(struct golang_process *process,
			      const struct golang_metrics_vars *vars,
			      struct golang_metrics_reader **ret_reader, struct err *err);
