/* src/golang/heap/snapshot.c: OOM snapshots of the heap; see heap.h. */
#include <errno.h>
#include <stdlib.h>

#include "golang/heap/state.h"
#include "golang/process_state.h"

static int picture_header(struct profile *p, int64_t rate, int64_t time_ns)
{
	static const struct golang_profile_kind kind = {
		.types = {TYPE_GO_OOM_INUSE_OBJECTS, TYPE_GO_OOM_INUSE_SPACE},
		.n_types = 2,
		.period = {"space", "bytes"},
	};

	return golang_profile_header(p, &kind, rate, time_ns);
}

static size_t picture_find(const struct golang_heap *heap, struct golang_heap_stack *found)
{
	struct golang_heap_scale scale = {.rate = golang_heap_scale_rate(heap)};
	size_t n = 0;

	for (size_t i = heap->buckets.len; i-- > 0;) {
		const struct golang_bucket *bucket = &heap->buckets.items[i];
		int64_t *values = found[n].values;

		/*
		 * Include a bucket that was being written when the program was killed: it is off by
		 * one object, and likely the one that matters.
		 */
		golang_heap_scale(&scale,
				  (int64_t)(bucket->counts.all_allocs - bucket->counts.all_frees),
				  bucket->size, values);
		found[n].bucket = i;
		n += values[0] > 0 && values[1] > 0;
	}
	return n;
}

static int picture_samples(struct golang_heap *heap, struct golang_stack_cache_export *ex)
{
	_cleanup_free_ struct golang_heap_stack *found =
		calloc(heap->buckets.len + 1, sizeof(*found));

	if (!found)
		return -ENOMEM;
	return golang_heap_add_samples(heap, ex, found, picture_find(heap, found));
}

int golang_heap_snapshot(struct golang_heap *heap, struct profile **ret_profile, struct err *err)
{
	_cleanup_(golang_stack_cache_export_release) struct golang_stack_cache_export ex = {0};
	_cleanup_(profile_freep) struct profile *p = profile_new();
	int r;

	if (!p)
		return err_oom(err);
	r = golang_heap_cache_stacks(heap, err);
	if (r < 0)
		return r;
	r = golang_stack_cache_export_init(&ex, &heap->names, p);
	if (r == 0)
		r = picture_header(p, golang_heap_scale_rate(heap),
				   proc_mem_time_ns(heap->process->mem));
	if (r == 0)
		r = picture_samples(heap, &ex);
	if (r < 0)
		return golang_symbolizer_error(r, err);
	*ret_profile = TAKE_PTR(p);
	return 0;
}
