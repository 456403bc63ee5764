/* src/golang/heap/state.h: shared by heap profiles and deltas. */
#pragma once

#include "golang/buckets/buckets.h"
#include "golang/heap/heap.h"
#include "golang/profiles.h"

/*
 * Allocations as of the last delta: scaled, so that deltas add up exactly. -1 if the baseline could
 * not be read: then the first readable value becomes the baseline.
 */
struct golang_heap_base {
	int64_t objects;
	int64_t bytes;
};

struct golang_heap {
	struct golang_process *process; /* borrowed */
	struct golang_buckets buckets;
	struct golang_heap_stats stats;
	int64_t scale_rate;		/* 0: the rate of the read */
	struct golang_heap_base *bases; /* of the first n_bases buckets; later ones count in full */
	size_t n_bases;
	int64_t base_rate; /* the rate they were scaled by */
	bool has_base;
	struct golang_stack_cache names; /* of the stacks in deltas, oldest first */
};

/* Scaling factors, caching those used last. Set the rate only. */
struct golang_heap_scale {
	int64_t rate;
	struct {
		uint64_t size;
		double factor;
	} known[128];
};

/* A stack to be shown, with as many values as the profile has types. */
struct golang_heap_stack {
	size_t bucket;
	int64_t values[4];
};
/* Of more than the maximum, those with the most bytes; the rest is "(other)". Sorts found. */
int golang_heap_add_samples(struct golang_heap *heap, struct golang_stack_cache_export *ex,
			    struct golang_heap_stack *found, size_t n);

/* The rate to scale the read by. */
int64_t golang_heap_scale_rate(const struct golang_heap *heap);
/* Inconsistent counts must not be shown. */
bool golang_heap_is_torn(const struct golang_heap *heap, const struct golang_bucket *bucket);
/* Like runtime/pprof.scaleHeapSample: from sampled to allocated, in objects and bytes. */
void golang_heap_scale(struct golang_heap_scale *scale, int64_t count, uint64_t size,
		       int64_t ret_values[2]);
/* alloc_objects, alloc_space, inuse_objects, inuse_space. */
void golang_heap_values(const struct golang_heap *heap, const struct golang_bucket *bucket,
			struct golang_heap_scale *scale, int64_t values[4]);
/* Types, period and time. */
int golang_heap_header(struct profile *p, int64_t rate, int64_t time_ns);
/* The locations of a stack as shown by runtime/pprof: without the allocator's own frames. */
int golang_heap_locations(struct golang_symbolizer *s, const uint64_t *pcs, size_t n,
			  uint32_t *locations, struct err *err);
/* Symbolizes new stacks: heap->names then has all of them. */
int golang_heap_cache_stacks(struct golang_heap *heap, struct err *err);
