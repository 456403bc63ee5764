/* src/golang/heap/heap.c: see heap.h. */
#include "golang/heap/heap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "golang/heap/state.h"
#include "golang/process_state.h"

/* A pass takes a millisecond; a program rarely has more than ten GC cycles a second. */
#define HEAP_MAX_TRIES 20
/* A pass over a million forged buckets takes longer: stop trying after this time. */
#define HEAP_MAX_NS (2 * NS_PER_SEC)

/* This many new stacks are symbolized in no time. */
#define HEAP_FEW_STACKS 4096

/* The runtime's variables at one moment. */
struct heap_globals {
	uint64_t head;
	int64_t rate;
	uint32_t cycle; /* raw: with its flag, if any */
};

int golang_heap_new(struct golang_process *process, struct golang_heap **ret_heap, struct err *err)
{
	struct golang_heap *heap;

	if (!process->facts.has_heap)
		return err_pass(err, -ENOTSUP, process->facts.heap_refusal);
	heap = calloc(1, sizeof(*heap));
	if (!heap)
		return err_oom(err);
	heap->process = process;
	golang_buckets_init(&heap->buckets, process->mem, process->layout);
	*ret_heap = heap;
	return 0;
}

void golang_heap_free(struct golang_heap *heap)
{
	if (!heap)
		return;
	golang_buckets_release(&heap->buckets);
	golang_stack_cache_release(&heap->names);
	free(heap->bases);
	free(heap);
}

static int heap_globals_read(struct golang_heap *heap, struct heap_globals *g, struct err *err)
{
	const struct golang_vars *vars = &heap->process->vars;
	const struct proc_range ranges[] = {
		{.addr = vars->mbuckets, .dst = &g->head, .len = sizeof(g->head)},
		{.addr = vars->mprof_cycle, .dst = &g->cycle, .len = sizeof(g->cycle)},
		{.addr = vars->mem_profile_rate, .dst = &g->rate, .len = sizeof(g->rate)},
	};

	return proc_mem_readv(heap->process->mem, ranges, ARRAY_SIZE(ranges), err);
}

/*
 * Reads all buckets once. New ones are read during the walk; if there were none before, nothing
 * needs rereading.
 */
static int heap_pass(struct golang_heap *heap, const struct heap_globals *g, struct err *err)
{
	struct golang_buckets *b = &heap->buckets;
	uint32_t cycle = g->cycle >> heap->process->layout->cycle_shift;
	bool known = b->len > 0;
	int r;

	r = golang_buckets_follow(b, g->head, cycle, err);
	if (r == 0 && known)
		r = golang_buckets_reread(b, cycle, err);
	return r;
}

/* Records the results of the pass. False if something changed during it: try again. */
static bool heap_settled(struct golang_heap *heap, const struct heap_globals *g)
{
	const struct golang_buckets *b = &heap->buckets;

	heap->stats.before_first_gc = !b->tally.published;
	heap->stats.torn_records = b->tally.published ? b->tally.torn : b->tally.all_torn;
	heap->stats.buckets = b->len;
	heap->stats.bad_buckets = b->bad;
	heap->stats.incomplete = b->incomplete;
	heap->stats.cycle = g->cycle >> heap->process->layout->cycle_shift;
	heap->stats.rate = g->rate;
	return heap->stats.torn_records == 0 && !b->tally.flush_pending;
}

/* The message of a failed read does not tell why; the address space may be gone. */
static int heap_why(struct golang_heap *heap, int code, struct err *err)
{
	uint32_t cycle;
	int r = proc_mem_check(heap->process->mem, heap->process->vars.mprof_cycle, &cycle,
			       sizeof(cycle), err);

	return r == -ESRCH ? r : code;
}

int golang_heap_read(struct golang_heap *heap, struct err *err)
{
	struct proc_mem *mem = heap->process->mem;
	uint64_t start = clock_mono_ns();

	/* On failure the earlier data stays, and so must the rate to scale it. */
	heap->stats = (struct golang_heap_stats){.rate = heap->stats.rate};
	for (int tries = 1;; tries++) {
		struct heap_globals g;
		struct err why = {0};
		uint32_t after;
		bool settled, last;
		int r;

		r = heap_globals_read(heap, &g, &why);
		if (r == 0)
			r = heap_pass(heap, &g, &why);
		if (r < 0) {
			r = heap_why(heap, r, err);
			return r == -ESRCH ? r : err_pass(err, r, &why);
		}
		r = proc_mem_check(mem, heap->process->vars.mprof_cycle, &after, sizeof(after),
				   err);
		if (r < 0)
			return r;
		settled = heap_settled(heap, &g);
		last = tries >= HEAP_MAX_TRIES || clock_mono_ns() - start > HEAP_MAX_NS;
		if (after == g.cycle && (settled || last))
			return 0;
		heap->stats.mixed = last;
		if (heap->stats.mixed)
			return 0;
		heap->stats.retries = (uint64_t)tries;
		clock_sleep_ns(NS_PER_MS);
	}
}

int golang_heap_read_last(struct golang_heap *heap, struct err *err)
{
	struct heap_globals g;
	int r = heap_globals_read(heap, &g, err);

	if (r == 0)
		r = heap_pass(heap, &g, err);
	if (r == 0)
		(void)heap_settled(heap, &g);
	if (r == 0 && heap->buckets.len - heap->names.n_stacks <= HEAP_FEW_STACKS)
		(void)golang_heap_cache_stacks(heap, NULL);
	return r;
}

static double heap_factor(struct golang_heap_scale *scale, uint64_t size)
{
	size_t at = hash_mix(size) % ARRAY_SIZE(scale->known);

	/* There are some seventy sizes, and computing an exponential is the slowest part here. */
	if (scale->known[at].size != size) {
		scale->known[at].size = size;
		scale->known[at].factor = 1 / (1 - exp(-(double)size / (double)scale->rate));
	}
	return scale->known[at].factor;
}

void golang_heap_scale(struct golang_heap_scale *scale, int64_t count, uint64_t size,
		       int64_t ret_values[2])
{
	int64_t bytes = (int64_t)((uint64_t)count * size);
	double factor;

	ret_values[0] = ret_values[1] = 0;
	if (count == 0 || bytes == 0)
		return;
	if (scale->rate <= 1) {
		ret_values[0] = count;
		ret_values[1] = bytes;
		return;
	}
	factor = heap_factor(scale, size);
	/* A forged count may not fit; an out-of-range conversion is undefined. */
	if (!(fabs((double)bytes * factor) < 9e18 && fabs((double)count * factor) < 9e18))
		return;
	ret_values[0] = (int64_t)((double)count * factor);
	ret_values[1] = (int64_t)((double)bytes * factor);
}

int golang_heap_header(struct profile *p, int64_t rate, int64_t time_ns)
{
	static const struct golang_profile_kind kind = {
		.types = {TYPE_GO_HEAP_ALLOC_OBJECTS, TYPE_GO_HEAP_ALLOC_SPACE,
			  TYPE_GO_HEAP_INUSE_OBJECTS, TYPE_GO_HEAP_INUSE_SPACE},
		.n_types = 4,
		.period = {"space", "bytes"},
	};

	return golang_profile_header(p, &kind, rate, time_ns);
}

int golang_heap_locations(struct golang_symbolizer *s, const uint64_t *pcs, size_t n,
			  uint32_t *locations, struct err *err)
{
	size_t hidden = golang_symbolizer_hidden(s, pcs, n);
	/* NULL if there are none at all. */
	const uint64_t *shown = hidden ? pcs + hidden : pcs;
	int r = golang_symbolizer_stack(s, shown, n - hidden, locations, err);

	/* Nothing left but goexit: show everything. */
	return r == 0 && hidden > 0 ? golang_symbolizer_stack(s, pcs, n, locations, err) : r;
}

bool golang_heap_is_torn(const struct golang_heap *heap, const struct golang_bucket *bucket)
{
	return heap->stats.before_first_gc ? bucket->counts.all_torn : bucket->counts.torn;
}

static uint64_t heap_allocs(const struct golang_heap *heap, const struct golang_bucket *bucket)
{
	return heap->stats.before_first_gc ? bucket->counts.all_allocs : bucket->counts.allocs;
}

void golang_heap_values(const struct golang_heap *heap, const struct golang_bucket *bucket,
			struct golang_heap_scale *scale, int64_t values[4])
{
	uint64_t allocs = heap_allocs(heap, bucket);
	uint64_t frees =
		heap->stats.before_first_gc ? bucket->counts.all_frees : bucket->counts.frees;

	golang_heap_scale(scale, (int64_t)allocs, bucket->size, &values[0]);
	golang_heap_scale(scale, (int64_t)(allocs - frees), bucket->size, &values[2]);
}

static int heap_sample(struct golang_heap *heap, struct golang_symbolizer *s,
		       const struct golang_bucket *bucket, const int64_t values[4], struct err *err)
{
	const struct golang_layout *layout = heap->process->layout;
	uint32_t locations[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE + 1];
	struct profile_label label = {.num = (int64_t)bucket->size};
	bool labelled = layout->label_always || (heap_allocs(heap, bucket) && bucket->size);
	uint32_t stack;
	int r, n;

	n = golang_heap_locations(s, golang_buckets_stack(&heap->buckets, bucket),
				  MIN(bucket->depth, layout->max_depth), locations, err);
	if (n < 0)
		return n;
	r = profile_add_string(s->profile, view_str("bytes"), &label.key);
	if (r == 0)
		r = profile_add_stack(s->profile, locations, (uint32_t)n, &stack);
	if (r == 0)
		r = profile_add_sample(s->profile, stack, values, &label, labelled);
	return r < 0 ? golang_symbolizer_error(r, err) : 0;
}

int64_t golang_heap_scale_rate(const struct golang_heap *heap)
{
	return heap->scale_rate ? heap->scale_rate : heap->stats.rate;
}

static int heap_samples(struct golang_heap *heap, struct golang_symbolizer *s, struct err *err)
{
	struct golang_heap_scale scale = {.rate = golang_heap_scale_rate(heap)};
	int r = 0;

	/* Newest first, as the runtime lists them. */
	for (size_t i = heap->buckets.len; r == 0 && i-- > 0;) {
		const struct golang_bucket *bucket = &heap->buckets.items[i];
		int64_t values[4];

		if (golang_heap_is_torn(heap, bucket))
			continue;
		golang_heap_values(heap, bucket, &scale, values);
		r = heap_sample(heap, s, bucket, values, err);
	}
	return r;
}

int golang_heap_profile(struct golang_heap *heap, struct profile **ret_profile, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	_cleanup_(golang_symbolizer_release) struct golang_symbolizer s = {0};
	int r;

	if (!p)
		return err_oom(err);
	r = golang_buckets_recall_stacks(&heap->buckets, err);
	if (r < 0)
		return r;
	golang_symbolizer_init(&s, heap->process, p);
	r = golang_heap_header(p, golang_heap_scale_rate(heap),
			       proc_mem_time_ns(heap->process->mem));
	if (r < 0)
		return golang_symbolizer_error(r, err);
	r = golang_symbolizer_mappings(&s, err);
	if (r == 0)
		r = heap_samples(heap, &s, err);
	if (r == 0)
		r = golang_symbolizer_finish(&s, err);
	if (r < 0)
		return r;
	heap->stats.unknown_frames = s.unknown;
	*ret_profile = TAKE_PTR(p);
	return 0;
}

void golang_heap_trim(struct golang_heap *heap)
{
	golang_mem_cache_release(&heap->process->cache);
	if (heap->names.n_stacks == heap->buckets.len)
		golang_buckets_forget_stacks(&heap->buckets);
	golang_buckets_trim(&heap->buckets);
}

const struct golang_heap_stats *golang_heap_stats(const struct golang_heap *heap)
{
	return &heap->stats;
}

int golang_heap_rate(struct golang_heap *heap, int64_t *ret_rate, struct err *err)
{
	return proc_mem_check(heap->process->mem, heap->process->vars.mem_profile_rate, ret_rate,
			      sizeof(*ret_rate), err);
}

void golang_heap_scale_by(struct golang_heap *heap, int64_t rate)
{
	heap->scale_rate = rate;
}
