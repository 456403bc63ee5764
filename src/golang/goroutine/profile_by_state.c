/*
 * src/golang/goroutine/profile_by_state.c: goroutines by state, for readers of many programs: skips
 * labels and mappings, which they do not need.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/buckets/bucket.h"
#include "golang/goroutine/state.h"
#include "golang/grow.h"
#include "pipeline/registry/registry.h"

/* The rest is one sample: nobody looks at more, and other processes need room in the store, too. */
#define STATES_MAX_STACKS 10000

enum { STATE_ALL, STATE_WAITING, STATE_RUNNABLE, STATE_RUNNING, STATE_SYSCALL, N_STATES };

struct counts {
	int64_t values[N_STATES];
};

struct states {
	struct golang_goroutines *gs;
	struct golang_symbolizer s;
	struct intern places;
	struct counts *counts; /* by index of the place */
	size_t cap;
	struct counts *by_stack; /* of the profile */
	size_t by_stack_cap;
};

static void states_release(struct states *st)
{
	golang_symbolizer_release(&st->s);
	intern_release(&st->places);
	free(st->counts);
	free(st->by_stack);
}

/* A preempted one is runnable. */
static int state_type(enum golang_g_state state)
{
	switch (state) {
	case GOLANG_G_WAITING:
		return STATE_WAITING;
	case GOLANG_G_RUNNING:
		return STATE_RUNNING;
	case GOLANG_G_SYSCALL:
		return STATE_SYSCALL;
	default:
		return STATE_RUNNABLE;
	}
}

static int states_count(struct states *st, const struct golang_goroutine *g)
{
	const struct golang_goroutine_place place = golang_goroutine_place_of(g);
	uint32_t id, before = st->places.len;
	int r = intern_add(&st->places, view_of(&place, sizeof(place)), &id);

	if (r == 0)
		r = golang_grow(&st->counts, &st->cap, st->places.len, sizeof(*st->counts),
				SIZE_MAX);
	if (r < 0)
		return r;
	if (st->places.len > before)
		st->counts[id] = (struct counts){0};
	st->counts[id].values[STATE_ALL] += (int64_t)st->gs->stride;
	st->counts[id].values[state_type(g->state)] += (int64_t)st->gs->stride;
	return 0;
}

/* Stacks that are equal once they are cut become one sample. */
static int states_add(struct states *st, uint32_t stack, const struct counts *counts)
{
	size_t before = st->by_stack_cap;
	int r = golang_grow(&st->by_stack, &st->by_stack_cap, (size_t)stack + 1,
			    sizeof(*st->by_stack), SIZE_MAX);

	if (r < 0)
		return r;
	if (st->by_stack_cap > before)
		memset(st->by_stack + before, 0,
		       (st->by_stack_cap - before) * sizeof(*st->by_stack));
	for (int i = 0; i < N_STATES; i++)
		st->by_stack[stack].values[i] += counts->values[i];
	return 0;
}

static int states_sample(struct states *st, uint32_t id, struct err *err)
{
	uint32_t locations[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE + 3], stack;
	struct golang_goroutine_place place;
	int r = 0, n;

	memcpy(&place, intern_get(&st->places, id).data, sizeof(place));
	n = golang_goroutine_locations(st->gs, &st->s, &place, locations, err);
	if (n < 0)
		return n;
	if (golang_goroutine_is_cut(st->gs, &place))
		r = golang_goroutine_marker(st->s.profile, "[stack is deeper than was recorded]",
					    &locations[n++]);
	if (r == 0)
		r = profile_add_stack(st->s.profile, locations, (uint32_t)n, &stack);
	if (r == 0)
		r = states_add(st, stack, &st->counts[id]);
	return r < 0 ? golang_symbolizer_error(r, err) : 0;
}

/* Most goroutines first, then those known longest: they are the same in the next reading. */
static int place_compare(const void *a, const void *b, void *arg)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct states *st = arg;
	int64_t m = st->counts[x].values[STATE_ALL], n = st->counts[y].values[STATE_ALL];
	struct golang_goroutine_place p, q;

	if (m != n)
		return m > n ? -1 : 1;
	memcpy(&p, intern_get(&st->places, x).data, sizeof(p));
	memcpy(&q, intern_get(&st->places, y).data, sizeof(q));
	return p.stack < q.stack ? -1 : p.stack > q.stack;
}

static int states_other(struct states *st, const uint32_t *order, size_t from, struct err *err)
{
	struct counts sum = {0};
	uint32_t location, stack;
	int r;

	for (size_t i = from; i < st->places.len; i++)
		for (int state = 0; state < N_STATES; state++)
			sum.values[state] += st->counts[order[i]].values[state];
	st->gs->stats.folded = (uint64_t)sum.values[STATE_ALL];
	r = golang_goroutine_marker(st->s.profile, "(other)", &location);
	if (r == 0)
		r = profile_add_stack(st->s.profile, &location, 1, &stack);
	if (r == 0)
		r = states_add(st, stack, &sum);
	return r < 0 ? golang_symbolizer_error(r, err) : 0;
}

static int states_samples(struct states *st, struct err *err)
{
	size_t shown = MIN(st->places.len, (uint32_t)STATES_MAX_STACKS);
	_cleanup_free_ uint32_t *order = calloc((size_t)st->places.len + 1, sizeof(*order));
	int r = 0;

	if (!order)
		return err_oom(err);
	for (uint32_t i = 0; i < st->places.len; i++)
		order[i] = i;
	if (shown < st->places.len)
		qsort_r(order, st->places.len, sizeof(*order), place_compare, st);
	for (size_t i = 0; r == 0 && i < shown; i++)
		r = states_sample(st, order[i], err);
	return r < 0 || shown == st->places.len ? r : states_other(st, order, shown, err);
}

int golang_goroutines_by_state(struct golang_goroutines *gs, struct profile **ret_profile,
			       struct err *err)
{
	static const enum type_id types[N_STATES] = {
		[STATE_ALL] = TYPE_GOROUTINE_ALL,
		[STATE_WAITING] = TYPE_GOROUTINE_WAITING,
		[STATE_RUNNABLE] = TYPE_GOROUTINE_RUNNABLE,
		[STATE_RUNNING] = TYPE_GOROUTINE_RUNNING,
		[STATE_SYSCALL] = TYPE_GOROUTINE_SYSCALL,
	};
	_cleanup_(profile_freep) struct profile *p = profile_new();
	_cleanup_(states_release) struct states st = {.gs = gs};
	int r = 0;

	if (!p)
		return err_oom(err);
	golang_symbolizer_init(&st.s, gs->process, p);
	for (int type = 0; r == 0 && type < N_STATES; type++)
		r = registry_type_add(p, types[type]);
	for (size_t i = 0; r == 0 && i < gs->len; i++)
		if (!gs->items[i].unsampled)
			r = states_count(&st, &gs->items[i]);
	if (r < 0)
		return golang_symbolizer_error(r, err);
	r = states_samples(&st, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < profile_n_stacks(p); i++)
		r = profile_add_sample(p, i, st.by_stack[i].values, NULL, 0);
	if (r < 0)
		return golang_symbolizer_error(r, err);
	*ret_profile = TAKE_PTR(p);
	return 0;
}
