/* src/golang/contention/profile.c: profiles of waits, cumulative and since the last read. */
#include <string.h>

#include "golang/contention/state.h"
#include "pipeline/registry/registry.h"

enum { CONTENTIONS, DELAY, N_VALUES };

/*
 * A forged value may not fit, and an out-of-range conversion is undefined. No wait is negative, so
 * no difference is out of range either.
 */
static int64_t whole(double value)
{
	return value > 0 && value < 9e18 ? (int64_t)value : 0;
}

/* Like runtime.BlockProfile, runtime.MutexProfile and runtime/pprof's printCountCycleProfile. */
static void values_of(const struct golang_contention *c, double count, int64_t cycles,
		      int64_t values[N_VALUES])
{
	double ns = (double)cycles / (c->stats.ticks_per_second / 1e9);
	int64_t n = whole(count);

	if (c->kind == GOLANG_BLOCK && n == 0)
		n = 1;
	/* Since 1.20 the values are already scaled by the fraction. */
	if (c->kind == GOLANG_MUTEX && c->process->layout->minor <= 19) {
		n = whole((double)n * (double)c->stats.rate);
		ns *= (double)c->stats.rate;
	}
	values[CONTENTIONS] = n;
	values[DELAY] = whole(ns);
}

static int add_header(const struct golang_contention *c, struct profile *p)
{
	static const struct golang_profile_kind kinds[] = {
		[GOLANG_BLOCK] = {.types = {TYPE_GO_BLOCK_CONTENTIONS, TYPE_GO_BLOCK_DELAY},
				  .n_types = 2,
				  .period = {"contentions", "count"}},
		[GOLANG_MUTEX] = {.types = {TYPE_GO_MUTEX_CONTENTIONS, TYPE_GO_MUTEX_DELAY},
				  .n_types = 2,
				  .period = {"contentions", "count"}},
	};

	return golang_profile_header(p, &kinds[c->kind], 1, proc_mem_time_ns(c->process->mem));
}

static int locations_of(struct golang_contention *c, struct golang_symbolizer *s,
			const struct golang_bucket *bucket, uint32_t *locations, struct err *err)
{
	const uint64_t *pcs = golang_buckets_stack(&c->buckets, bucket);
	uint64_t expanded[GOLANG_BUCKET_MAX_DEPTH];
	size_t n = MIN(bucket->depth, GOLANG_BUCKET_MAX_DEPTH);

	if (c->process->layout->minor < 23)
		return golang_symbolizer_stack(s, pcs, MIN(n, c->max_depth), locations, err);
	n = golang_contention_expand(c->process, pcs, n, expanded, c->max_depth);
	return golang_symbolizer_stack(s, expanded, n, locations, err);
}

static int compare_longest_first(const void *x, const void *y, void *arg)
{
	const struct golang_bucket *items = arg;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	if (items[a].delay.cycles != items[b].delay.cycles)
		return items[a].delay.cycles > items[b].delay.cycles ? -1 : 1;
	/* Newest first, as the runtime lists them. */
	return a > b ? -1 : a < b;
}

static int add_samples(struct golang_contention *c, struct golang_symbolizer *s, struct err *err)
{
	uint32_t locations[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE + 1];
	struct golang_buckets *b = &c->buckets;
	_cleanup_free_ uint32_t *order = calloc(b->len + 1, sizeof(*order));

	if (!order)
		return err_oom(err);
	for (size_t i = 0; i < b->len; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, b->len, sizeof(*order), compare_longest_first, b->items);
	for (size_t i = 0; i < b->len; i++) {
		const struct golang_bucket *bucket = &b->items[order[i]];
		int64_t values[N_VALUES];
		uint32_t stack;
		int n, r;

		n = locations_of(c, s, bucket, locations, err);
		if (n < 0)
			return n;
		values_of(c, bucket->delay.count, bucket->delay.cycles, values);
		r = profile_add_stack(s->profile, locations, (uint32_t)n, &stack);
		if (r == 0)
			r = profile_add_sample(s->profile, stack, values, NULL, 0);
		if (r < 0)
			return golang_symbolizer_error(r, err);
	}
	return 0;
}

int golang_contention_profile(struct golang_contention *c, struct profile **ret_profile,
			      struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	_cleanup_(golang_symbolizer_release) struct golang_symbolizer s = {0};
	int r;

	if (!p)
		return err_oom(err);
	r = golang_buckets_recall_stacks(&c->buckets, err);
	if (r < 0)
		return r;
	golang_symbolizer_init(&s, c->process, p);
	/* Plugins may have been opened since; inlined calls are needed before names are. */
	(void)golang_process_refresh(c->process, NULL);
	r = add_header(c, p);
	if (r < 0)
		return golang_symbolizer_error(r, err);
	r = golang_symbolizer_mappings(&s, err);
	if (r == 0)
		r = add_samples(c, &s, err);
	if (r == 0)
		r = golang_symbolizer_finish(&s, err);
	if (r < 0)
		return r;
	c->stats.unknown_frames = s.unknown;
	*ret_profile = TAKE_PTR(p);
	return 0;
}

static int locate(void *context, struct golang_symbolizer *s, size_t i, uint32_t *locations,
		  struct err *err)
{
	struct golang_contention *c = context;

	return locations_of(c, s, &c->buckets.items[i], locations, err);
}

static int delta_names(struct golang_contention *c, struct err *err)
{
	if (c->names.n_stacks < c->buckets.len)
		(void)golang_process_refresh(c->process, NULL);
	return golang_profile_names(c->process, &c->names, c->buckets.len, locate, c, err);
}

/* The change since the base, which it updates. False if there is nothing to show. */
static bool delta_values(const struct golang_contention *c, size_t i,
			 struct golang_contention_base *next, int64_t values[N_VALUES])
{
	const struct golang_delay *d = &c->buckets.items[i].delay;
	int64_t before[N_VALUES] = {0};

	*next = (struct golang_contention_base){
		.known = true, .count = d->count, .cycles = d->cycles};
	values_of(c, d->count, d->cycles, values);
	if (!c->has_base)
		return false;
	if (i < c->n_bases && c->bases[i].known)
		values_of(c, c->bases[i].count, c->bases[i].cycles, before);
	for (size_t k = 0; k < N_VALUES; k++)
		values[k] = values[k] > before[k] ? values[k] - before[k] : 0;
	return values[CONTENTIONS] || values[DELAY];
}

static int delta_build(struct golang_contention *c, struct golang_contention_base *bases,
		       struct profile **ret_profile, struct err *err)
{
	_cleanup_(golang_stack_cache_export_release) struct golang_stack_cache_export ex = {0};
	_cleanup_(profile_freep) struct profile *p = profile_new();
	int r;

	if (!p)
		return err_oom(err);
	r = golang_stack_cache_export_init(&ex, &c->names, p);
	if (r == 0)
		r = add_header(c, p);
	for (size_t i = c->buckets.len; r == 0 && i-- > 0;) {
		int64_t values[N_VALUES];
		uint32_t stack;

		if (!delta_values(c, i, &bases[i], values))
			continue;
		r = golang_stack_cache_export_stack(&ex, i, &stack);
		if (r == 0)
			r = profile_add_sample(p, stack, values, NULL, 0);
	}
	if (r < 0)
		return golang_symbolizer_error(r, err);
	c->stats.unknown_frames = c->names.unknown;
	*ret_profile = TAKE_PTR(p);
	return 0;
}

int golang_contention_delta_profile(struct golang_contention *c, struct profile **ret_profile,
				    struct err *err)
{
	_cleanup_free_ struct golang_contention_base *bases =
		calloc(c->buckets.len + 1, sizeof(*bases));
	int r;

	if (!bases)
		return err_oom(err);
	r = golang_buckets_recall_stacks(&c->buckets, err);
	if (r == 0)
		r = delta_names(c, err);
	if (r == 0)
		r = delta_build(c, bases, ret_profile, err);
	if (r < 0)
		return r;
	free(c->bases);
	c->bases = TAKE_PTR(bases);
	c->n_bases = c->buckets.len;
	c->has_base = true;
	return 0;
}
