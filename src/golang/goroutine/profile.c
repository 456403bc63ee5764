/* src/golang/goroutine/profile.c: goroutines as profiles, and as frames for text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/buckets/bucket.h"
#include "golang/goroutine/state.h"
#include "golang/grow.h"
#include "golang/profiles.h"

/* Per sample; the rest is omitted. */
#define PROFILE_MAX_LABELS 64
#define PROFILE_MAX_GROUPS ((size_t)1 << 24)

/* What the goroutines of a sample have in common. */
struct group_key {
	struct golang_goroutine_place place;
	uint64_t labels;
	uint64_t created_by; /* the rest is used with details only */
	uint64_t state;
	const char *wait_reason;
};

struct group {
	struct group_key key;
	int64_t count;
	uint32_t stack; /* in the profile: those of several groups may be equal once they are cut */
};

struct builder {
	struct golang_goroutines *gs;
	struct golang_symbolizer s;
	struct intern keys; /* the id is the group */
	struct group *groups;
	size_t cap;
	bool details;
};

static void builder_release(struct builder *b)
{
	golang_symbolizer_release(&b->s);
	intern_release(&b->keys);
	free(b->groups);
}

struct golang_goroutine_place golang_goroutine_place_of(const struct golang_goroutine *g)
{
	bool no_stack = g->stack == GOLANG_NO_STACK;

	return (struct golang_goroutine_place){
		.stack = g->stack,
		.unverified = no_stack && g->state != GOLANG_G_RUNNING,
		.start_pc = no_stack ? g->start_pc : 0,
	};
}

static int builder_count(struct builder *b, const struct golang_goroutine *g)
{
	const struct group_key key = {
		.place = golang_goroutine_place_of(g),
		.labels = g->labels,
		.created_by = b->details ? g->created_by : 0,
		.state = b->details ? g->state : 0,
		.wait_reason = b->details ? g->wait_reason : NULL,
	};
	uint32_t id, before = b->keys.len;
	int r = intern_add(&b->keys, view_of(&key, sizeof(key)), &id);

	if (r == 0)
		r = golang_grow(&b->groups, &b->cap, (size_t)id + 1, sizeof(*b->groups),
				PROFILE_MAX_GROUPS);
	if (r < 0)
		return r;
	if (b->keys.len > before)
		b->groups[id] = (struct group){.key = key};
	b->groups[id].count += (int64_t)b->gs->stride;
	return 0;
}

static int group_compare(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->key.place.stack < y->key.place.stack ? -1
						       : x->key.place.stack > y->key.place.stack;
}

static int builder_groups(struct builder *b,
			  bool (*keep)(void *context, const struct golang_goroutine *g),
			  void *context)
{
	for (size_t i = 0; i < b->gs->len; i++) {
		const struct golang_goroutine *g = &b->gs->items[i];
		int r = 0;

		if (!g->unsampled && (!keep || keep(context, g)))
			r = builder_count(b, g);
		if (r < 0)
			return r;
	}
	if (b->keys.len)
		qsort(b->groups, b->keys.len, sizeof(*b->groups), group_compare);
	return 0;
}

static int label_add(struct builder *b, struct profile_label *labels, uint32_t *n, const char *key,
		     struct view value)
{
	int r;

	if (*n == PROFILE_MAX_LABELS)
		return 0;
	labels[*n] = (struct profile_label){0};
	r = profile_add_string(b->s.profile, view_str(key), &labels[*n].key);
	if (r == 0)
		r = profile_add_string(b->s.profile, value, &labels[*n].str);
	*n += r == 0;
	return r;
}

/* The name of the function that contains a return address; empty if there is none. */
static struct view name_at(struct builder *b, uint64_t pc)
{
	struct golang_pclntab *t;
	struct golang_func f;

	if (pc == 0 || !golang_process_func_at(b->gs->process, pc, &t, &f))
		return view_str("");
	return golang_pclntab_name(t, f.name);
}

static int group_labels(struct builder *b, const struct group_key *k, struct profile_label *labels,
			uint32_t *n)
{
	const char *const *list = golang_labels_list(&b->gs->labels, (uint32_t)k->labels);
	int r = 0;

	for (*n = 0; r == 0 && list[0] && list[1]; list += 2)
		r = label_add(b, labels, n, list[0], view_str(list[1]));
	if (!b->details)
		return r;
	if (r == 0)
		r = label_add(b, labels, n, "state",
			      view_str(golang_g_state_name((enum golang_g_state)k->state)));
	if (r == 0 && k->wait_reason[0])
		r = label_add(b, labels, n, "wait_reason", view_str(k->wait_reason));
	if (r == 0 && k->created_by)
		r = label_add(b, labels, n, "created_by", name_at(b, k->created_by));
	return r;
}

int golang_goroutine_marker(struct profile *p, const char *name, uint32_t *ret_location)
{
	struct profile_function f = {0};
	struct profile_line line = {0};
	int r = profile_add_string(p, view_str(name), &f.name);

	f.system_name = f.name;
	if (r == 0)
		r = profile_add_function(p, &f, &line.function);
	return r < 0 ? r : profile_add_location(p, 0, PROFILE_NO_MAPPING, &line, 1, ret_location);
}

bool golang_goroutine_is_cut(struct golang_goroutines *gs,
			     const struct golang_goroutine_place *place)
{
	size_t n = 0;

	if (place->stack != GOLANG_NO_STACK)
		(void)golang_unwind_logical(&gs->unwind, place->stack, &n);
	/* The outermost is goexit, which no profile shows. */
	return n > gs->depth + 1;
}

int golang_goroutine_locations(struct golang_goroutines *gs, struct golang_symbolizer *s,
			       const struct golang_goroutine_place *place, uint32_t *locations,
			       struct err *err)
{
	const uint64_t *pcs;
	uint64_t start;
	size_t n;
	int r;

	if (place->stack != GOLANG_NO_STACK) {
		pcs = golang_unwind_logical(&gs->unwind, place->stack, &n);
		if (!pcs)
			return golang_symbolizer_error(-E2BIG, err);
		return golang_symbolizer_stack(s, pcs, MIN(n, gs->depth), locations, err);
	}
	r = golang_goroutine_marker(s->profile, place->unverified ? "[unverified]" : "[running]",
				    &locations[0]);
	if (r < 0)
		return golang_symbolizer_error(r, err);
	/* As if it were about to call its start function. */
	start = place->start_pc + 1;
	r = golang_symbolizer_stack(s, &start, place->start_pc ? 1 : 0, locations + 1, err);
	return r < 0 ? r : r + 1;
}

static int group_stack(struct builder *b, struct group *g, struct err *err)
{
	uint32_t locations[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE + 2];
	int r, n = golang_goroutine_locations(b->gs, &b->s, &g->key.place, locations, err);

	if (n < 0)
		return n;
	if (golang_goroutine_is_cut(b->gs, &g->key.place))
		b->gs->stats.cut += (uint64_t)g->count;
	r = profile_add_stack(b->s.profile, locations, (uint32_t)n, &g->stack);
	return r < 0 ? golang_symbolizer_error(r, err) : 0;
}

/* By all that a sample shows; a text of the runtime has one address. */
static int group_compare_shown(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	const uint64_t p[] = {x->stack, x->key.labels, x->key.created_by, x->key.state,
			      (uintptr_t)x->key.wait_reason};
	const uint64_t q[] = {y->stack, y->key.labels, y->key.created_by, y->key.state,
			      (uintptr_t)y->key.wait_reason};

	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		if (p[i] != q[i])
			return p[i] < q[i] ? -1 : 1;
	return 0;
}

/* Those with equal samples become one; returns how many remain. */
static size_t groups_merge(struct group *groups, size_t n)
{
	size_t len = 0;

	if (n)
		qsort(groups, n, sizeof(*groups), group_compare_shown);
	for (size_t i = 0; i < n; i++) {
		if (len && group_compare_shown(&groups[len - 1], &groups[i]) == 0)
			groups[len - 1].count += groups[i].count;
		else
			groups[len++] = groups[i];
	}
	if (len)
		qsort(groups, len, sizeof(*groups), group_compare);
	return len;
}

static int group_sample(struct builder *b, const struct group *g, struct err *err)
{
	struct profile_label labels[PROFILE_MAX_LABELS];
	uint32_t n_labels;
	int r = group_labels(b, &g->key, labels, &n_labels);

	if (r == 0)
		r = profile_add_sample(b->s.profile, g->stack, &g->count, labels, n_labels);
	return r < 0 ? golang_symbolizer_error(r, err) : 0;
}

int golang_goroutines_profile(struct golang_goroutines *gs, bool details,
			      bool (*keep)(void *context, const struct golang_goroutine *g),
			      void *context, struct profile **ret_profile, struct err *err)
{
	static const struct golang_profile_kind kind = {
		.types = {TYPE_GOROUTINE_ALL},
		.n_types = 1,
		.period = {"goroutine", "count"},
	};
	_cleanup_(profile_freep) struct profile *p = profile_new();
	_cleanup_(builder_release) struct builder b = {.gs = gs, .details = details};
	size_t n;
	int r;

	if (!p)
		return err_oom(err);
	golang_symbolizer_init(&b.s, gs->process, p);
	r = golang_profile_header(p, &kind, 1, proc_mem_time_ns(gs->process->mem));
	if (r == 0)
		r = builder_groups(&b, keep, context);
	if (r < 0)
		return golang_symbolizer_error(r, err);
	r = golang_symbolizer_mappings(&b.s, err);
	gs->stats.cut = 0;
	for (uint32_t i = 0; r == 0 && i < b.keys.len; i++)
		r = group_stack(&b, &b.groups[i], err);
	n = r == 0 ? groups_merge(b.groups, b.keys.len) : 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = group_sample(&b, &b.groups[i], err);
	if (r == 0)
		r = golang_symbolizer_finish(&b.s, err);
	if (r < 0)
		return r;
	*ret_profile = TAKE_PTR(p);
	return 0;
}

/* The state of a walk over a stack's frames. */
struct frames {
	golang_goroutine_frame_fn emit;
	void *context;
	uint64_t pc;
	int result;
};

/* Name and file share the cache, so copy the name before looking up the file. */
static void frame_emit(struct frames *fr, const struct golang_active *active)
{
	struct golang_goroutine_frame frame = {
		.pc = fr->pc,
		.entry = active->func->entry,
		.inlined = active->inlined,
		.func_id = active->func_id,
	};
	struct view name = golang_pclntab_name(active->tables, active->name);
	char copy[4096];
	size_t len = MIN(name.len, sizeof(copy));

	if (len)
		memcpy(copy, name.data, len);
	frame.function = view_of(copy, len);
	frame.file =
		golang_pclntab_file_line(active->tables, active->func, active->pc, &frame.line);
	fr->result = fr->emit(fr->context, &frame);
}

static void frame_visit(void *arg, const struct golang_active *active)
{
	struct frames *fr = arg;

	if (fr->result >= 0)
		frame_emit(fr, active);
}

int golang_goroutines_frames(struct golang_goroutines *gs, uint32_t stack,
			     golang_goroutine_frame_fn emit, void *context)
{
	struct frames fr = {.emit = emit, .context = context};
	uint8_t callee = 0;
	bool exact;
	size_t n;
	const uint64_t *pcs = golang_unwind_physical(&gs->unwind, stack, &n, &exact);

	for (size_t i = 0; pcs && i < n && fr.result >= 0; i++) {
		fr.pc = pcs[i];
		if (!golang_unwind_expand(&gs->unwind, pcs[i], exact, &callee, frame_visit, &fr))
			break;
		exact = golang_unwind_injected(&gs->unwind, pcs[i]);
	}
	return fr.result;
}

int golang_goroutines_site(struct golang_goroutines *gs, uint64_t pc,
			   golang_goroutine_frame_fn emit, void *context)
{
	struct frames fr = {.emit = emit, .context = context, .pc = pc};
	struct golang_active active = {0};
	struct golang_func f;

	if (pc == 0 || !golang_process_func_at(gs->process, pc, &active.tables, &f))
		return 0;
	active.func = &f;
	active.pc = pc > f.entry ? pc - 1 : pc;
	active.name = f.name;
	active.func_id = f.func_id;
	frame_emit(&fr, &active);
	return fr.result < 0 ? fr.result : 1;
}
