/*
 * src/agent/go_goroutines.c: the reader of goroutine profiles, by state.
 *
 * Stacks are those of the program's own profile; that goroutines wait, and do not run, is told by
 * types beside the one that counts them all, so that each state can be shown by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/go_program.h"
#include "agent/reader.h"
#include "base/cleanup.h"
#include "golang/goroutines.h"

enum { TYPE_ALL, TYPE_WAITING, TYPE_RUNNABLE, TYPE_RUNNING, TYPE_SYSCALL, N_TYPES };

static const char *const type_names[N_TYPES] = {"goroutine", "waiting", "runnable", "running",
						"syscall"};

struct go_goroutines {
	const struct reader_context *context; /* borrowed */
	struct go_program *program;
};

/* The type of a sample by its label. One that was preempted can run. */
static int sample_type(const struct profile *p, const struct profile_sample *s)
{
	for (uint32_t i = 0; i < s->n_labels; i++) {
		const char *state = profile_cstring(p, s->labels[i].str);

		if (strcmp(profile_cstring(p, s->labels[i].key), "state") != 0)
			continue;
		for (int type = TYPE_WAITING; type < N_TYPES; type++)
			if (strcmp(state, type_names[type]) == 0)
				return type;
		return TYPE_RUNNABLE;
	}
	return TYPE_ALL;
}

/* Functions and locations keep their numbers. */
static int copy_names(const struct profile *from, struct profile *to)
{
	uint32_t id;
	int r = 0;

	for (size_t i = 0; r == 0 && i < profile_n_functions(from); i++) {
		const struct profile_function *f = profile_function_at(from, i);
		struct profile_function copy = {.start_line = f->start_line};

		r = profile_add_string(to, profile_string(from, f->name), &copy.name);
		if (r == 0)
			r = profile_add_string(to, profile_string(from, f->file), &copy.file);
		copy.system_name = copy.name;
		if (r == 0)
			r = profile_add_function(to, &copy, &id);
	}
	for (size_t i = 0; r == 0 && i < profile_n_locations(from); i++) {
		const struct profile_location *l = profile_location_at(from, i);

		r = profile_add_location(to, l->address, PROFILE_NO_MAPPING, l->lines, l->n_lines,
					 &id);
	}
	return r;
}

static int copy_samples(const struct profile *from, struct profile *to)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < profile_n_samples(from); i++) {
		const struct profile_sample *s = profile_sample_at(from, i);
		int64_t values[N_TYPES] = {[TYPE_ALL] = s->values[0]};
		uint32_t n, stack;
		const uint32_t *locations = profile_stack_at(from, s->stack, &n);

		values[sample_type(from, s)] = s->values[0];
		r = profile_add_stack(to, locations, n, &stack);
		if (r == 0)
			r = profile_add_sample(to, stack, values, NULL, 0);
	}
	return r;
}

static int split_by_state(const struct profile *from, struct profile **ret_profile, struct err *err)
{
	_cleanup_(profile_freep) struct profile *to = profile_new();
	int r = to ? 0 : -ENOMEM;

	for (int type = 0; r == 0 && type < N_TYPES; type++)
		r = profile_add_type(to, type_names[type], "count");
	if (r == 0)
		r = copy_names(from, to);
	if (r == 0)
		r = copy_samples(from, to);
	if (r < 0)
		return err_set(err, r, "the goroutine profile takes too much memory");
	*ret_profile = TAKE_PTR(to);
	return 0;
}

static void goroutines_count(const struct golang_goroutines_stats *stats, struct reading *reading)
{
	uint64_t *values = reading->figures.values;

	values[FIGURE_WAITING] = stats->states[GOLANG_G_WAITING];
	values[FIGURE_RUNNABLE] =
		stats->states[GOLANG_G_RUNNABLE] + stats->states[GOLANG_G_PREEMPTED];
	values[FIGURE_RUNNING] = stats->states[GOLANG_G_RUNNING];
	values[FIGURE_SYSCALL] = stats->states[GOLANG_G_SYSCALL];
	reading->figures.has = 1U << FIGURE_WAITING | 1U << FIGURE_RUNNABLE | 1U << FIGURE_RUNNING |
			       1U << FIGURE_SYSCALL;
	reading->snapshot_types = (1U << N_TYPES) - 1;
	reading->lost = stats->bad + stats->incomplete;
	if (stats->sampled)
		(void)snprintf(reading->note, sizeof(reading->note),
			       "of %llu goroutines the stacks of %llu were read, which stand for "
			       "all",
			       (unsigned long long)stats->total,
			       (unsigned long long)stats->sampled);
}

static int goroutines_collect_busy(struct go_goroutines *g, struct reading *reading,
				   struct err *err)
{
	_cleanup_(profile_freep) struct profile *all = NULL;
	struct golang_goroutines *gs = NULL;
	int r;

	r = go_program_goroutines(g->program, g->context->goroutine_max, &gs, err);
	if (r == 0)
		r = golang_goroutines_read(gs, err);
	if (r == 0)
		r = golang_goroutines_profile(gs, true, NULL, NULL, &all, err);
	if (r == 0)
		goroutines_count(golang_goroutines_stats(gs), reading);
	if (gs)
		golang_goroutines_trim(gs);
	return r < 0 ? r : split_by_state(all, &reading->profile, err);
}

static int go_goroutines_collect(void *state, struct reading *ret_reading, struct err *err)
{
	struct go_goroutines *g = state;
	struct reading reading = {0};
	int r;

	go_program_lock(g->program);
	r = goroutines_collect_busy(g, &reading, err);
	go_program_unlock(g->program);
	if (r == 0)
		*ret_reading = reading;
	return r;
}

static int go_goroutines_probe(const struct reader_context *context, struct reader_share *share,
			       struct target *target, struct reader_answer *ret_answer,
			       struct err *err)
{
	int r = go_program_probe(share, target, ret_answer, err);

	if (r == 0 && ret_answer->yes && !context->goroutine_interval_ns)
		go_program_refuse(ret_answer, "goroutine profiles are turned off",
				  "start sonde with --goroutine-interval 60s");
	return r;
}

static void go_goroutines_close(void *state)
{
	struct go_goroutines *g = state;

	go_program_unref(g->program);
	free(g);
}

static int go_goroutines_open(const struct reader_context *context, struct reader_share *share,
			      const struct target *target, void **ret_state, struct err *err)
{
	struct go_goroutines *g = calloc(1, sizeof(*g));
	struct golang_goroutines *gs;
	int r;

	if (!g)
		return err_oom(err);
	g->context = context;
	r = go_program_get(share, target, &g->program, err);
	if (r == 0) {
		go_program_lock(g->program);
		r = go_program_goroutines(g->program, context->goroutine_max, &gs, err);
		go_program_unlock(g->program);
	}
	if (r < 0) {
		go_goroutines_close(g);
		return r;
	}
	*ret_state = g;
	return 0;
}

static uint64_t go_goroutines_interval(const struct reader_context *context)
{
	return context->goroutine_interval_ns;
}

const struct reader_ops reader_go_goroutines = {
	.name = "go-goroutines",
	.family = "go_goroutine",
	.no_is_final = true,
	.interval_ns = go_goroutines_interval,
	.probe = go_goroutines_probe,
	.open = go_goroutines_open,
	.collect = go_goroutines_collect,
	.close = go_goroutines_close,
};
