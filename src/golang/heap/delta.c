/*
 * src/golang/heap/delta.c: changes since the last read; see heap.h.
 *
 * Callers of deltas ask repeatedly: only new stacks are symbolized, and results are kept
 * (golang/symbols/stack_cache.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "golang/goroutine/state.h"
#include "golang/heap/state.h"
#include "golang/process_state.h"

static int locate(void *context, struct golang_symbolizer *s, size_t i, uint32_t *locations,
		  struct err *err)
{
	const struct golang_heap *heap = context;
	const struct golang_bucket *bucket = &heap->buckets.items[i];

	return golang_heap_locations(s, golang_buckets_stack(&heap->buckets, bucket),
				     MIN(bucket->depth, heap->process->layout->max_depth),
				     locations, err);
}

int golang_heap_cache_stacks(struct golang_heap *heap, struct err *err)
{
	return golang_profile_names(heap->process, &heap->names, heap->buckets.len, locate, heap,
				    err);
}

/*
 * The change of a cumulative value since the last delta. A count read while the runtime moved it
 * from one cycle to the next may be too high: count again once the others have caught up.
 */
static int64_t delta_since(int64_t now, int64_t base)
{
	return now > base ? now - base : 0;
}

/* The base of the bucket; -1 for a baseline not read yet. */
static struct golang_heap_base delta_base(const struct golang_heap *heap, size_t i)
{
	if (!heap->has_base)
		return (struct golang_heap_base){.objects = -1, .bytes = -1};
	return i < heap->n_bases ? heap->bases[i] : (struct golang_heap_base){0};
}

/* Turns values into the change since base, and updates base. False if there is nothing to show. */
static bool delta_values(struct golang_heap_base *base, int64_t values[4])
{
	struct golang_heap_base before = *base;

	base->objects = MAX(base->objects, values[0]);
	base->bytes = MAX(base->bytes, values[1]);
	values[0] = before.objects < 0 ? 0 : delta_since(values[0], before.objects);
	values[1] = before.objects < 0 ? 0 : delta_since(values[1], before.bytes);
	return values[0] || values[1] || values[2] || values[3];
}

/* Stores the bases of the next delta. */
static size_t delta_find(const struct golang_heap *heap, struct golang_heap_base *bases,
			 struct golang_heap_stack *found)
{
	struct golang_heap_scale scale = {.rate = golang_heap_scale_rate(heap)};
	size_t n = 0;

	for (size_t i = heap->buckets.len; i-- > 0;) {
		const struct golang_bucket *bucket = &heap->buckets.items[i];
		int64_t *values = found[n].values;

		bases[i] = delta_base(heap, i);
		if (golang_heap_is_torn(heap, bucket))
			continue;
		golang_heap_values(heap, bucket, &scale, values);
		/*
		 * The runtime publishes allocations once the garbage collection after the next has
		 * begun. They are counted when they happen, though, and happened in this delta.
		 */
		golang_heap_scale(&scale, (int64_t)bucket->counts.all_allocs, bucket->size, values);
		found[n].bucket = i;
		n += delta_values(&bases[i], values);
	}
	return n;
}

/* Most bytes first, then those known longest: they are the same in the next reading. */
static int stack_compare(const void *a, const void *b)
{
	const struct golang_heap_stack *x = a, *y = b;
	double m = (double)x->values[1] + (double)x->values[3];
	double n = (double)y->values[1] + (double)y->values[3];

	if (m != n)
		return m > n ? -1 : 1;
	return x->bucket < y->bucket ? -1 : x->bucket > y->bucket;
}

static int add_other(const struct golang_heap_stack *rest, size_t n, struct profile *p)
{
	int64_t sum[4] = {0};
	uint32_t location = 0, stack = 0;
	int r = golang_goroutine_marker(p, "(other)", &location);

	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < 4; k++)
			sum[k] = (int64_t)((uint64_t)sum[k] + (uint64_t)rest[i].values[k]);
	if (r == 0)
		r = profile_add_stack(p, &location, 1, &stack);
	return r < 0 ? r : profile_add_sample(p, stack, sum, NULL, 0);
}

int golang_heap_add_samples(struct golang_heap *heap, struct golang_stack_cache_export *ex,
			    struct golang_heap_stack *found, size_t n)
{
	size_t shown = MIN(n, (size_t)GOLANG_HEAP_MAX_STACKS);
	int r = 0;

	if (shown < n)
		qsort(found, n, sizeof(*found), stack_compare);
	for (size_t i = 0; r == 0 && i < shown; i++) {
		uint32_t stack;

		r = golang_stack_cache_export_stack(ex, found[i].bucket, &stack);
		if (r == 0)
			r = profile_add_sample(ex->profile, stack, found[i].values, NULL, 0);
	}
	heap->stats.folded = n - shown;
	return r < 0 || shown == n ? r : add_other(found + shown, n - shown, ex->profile);
}

static int delta_samples(struct golang_heap *heap, struct golang_stack_cache_export *ex,
			 struct golang_heap_base *bases)
{
	_cleanup_free_ struct golang_heap_stack *found =
		calloc(heap->buckets.len + 1, sizeof(*found));

	if (!found)
		return -ENOMEM;
	return golang_heap_add_samples(heap, ex, found, delta_find(heap, bases, found));
}

static int delta_build(struct golang_heap *heap, struct golang_heap_base *bases,
		       struct profile **ret_profile, struct err *err)
{
	_cleanup_(golang_stack_cache_export_release) struct golang_stack_cache_export ex = {0};
	_cleanup_(profile_freep) struct profile *p = profile_new();
	int r;

	if (!p)
		return err_oom(err);
	r = golang_stack_cache_export_init(&ex, &heap->names, p);
	if (r == 0)
		r = golang_heap_header(p, golang_heap_scale_rate(heap),
				       proc_mem_time_ns(heap->process->mem));
	if (r == 0)
		r = delta_samples(heap, &ex, bases);
	if (r < 0)
		return golang_symbolizer_error(r, err);
	heap->stats.unknown_frames = heap->names.unknown;
	*ret_profile = TAKE_PTR(p);
	return 0;
}

int golang_heap_delta_profile(struct golang_heap *heap, struct profile **ret_profile,
			      struct err *err)
{
	_cleanup_free_ struct golang_heap_base *bases = NULL;
	int r = golang_heap_cache_stacks(heap, err);

	if (r < 0)
		return r;
	/* Values scaled by different rates cannot be subtracted. */
	if (heap->has_base && heap->base_rate != golang_heap_scale_rate(heap))
		heap->has_base = false;
	bases = calloc(heap->buckets.len + 1, sizeof(*bases));
	if (!bases)
		return err_oom(err);
	r = delta_build(heap, bases, ret_profile, err);
	if (r < 0)
		return r;
	free(heap->bases);
	heap->bases = TAKE_PTR(bases);
	heap->n_bases = heap->buckets.len;
	heap->base_rate = golang_heap_scale_rate(heap);
	heap->has_base = true;
	return 0;
}
