/*
 * src/agent/sources/go_goroutines.c: the reader of goroutine profiles, by state.
 *
 * Stacks match the program's own goroutine profile. Waiting goroutines have sample types of their
 * own next to the one that counts all, so that each state can be shown separately.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/sources/go_program.h"
#include "base/cleanup.h"
#include "golang/goroutine/goroutines.h"

struct go_goroutines {
	const struct agent_go_source_config *config; /* borrowed */
	struct agent_go_program *program;
};

static int goroutines_count(const struct golang_goroutines_stats *stats,
			    struct source_reading *reading)
{
	const struct {
		const char *state;
		uint64_t count;
	} rows[] = {
		{"waiting", stats->states[GOLANG_G_WAITING]},
		{"runnable", stats->states[GOLANG_G_RUNNABLE] + stats->states[GOLANG_G_PREEMPTED]},
		{"running", stats->states[GOLANG_G_RUNNING]},
		{"syscall", stats->states[GOLANG_G_SYSCALL]},
	};
	int r = 0;

	reading->lost = stats->bad + stats->incomplete;
	if (stats->sampled)
		(void)snprintf(reading->note, sizeof(reading->note),
			       "%llu goroutines; %llu stacks sampled",
			       (unsigned long long)stats->total,
			       (unsigned long long)stats->sampled);
	else if (stats->folded)
		(void)snprintf(reading->note, sizeof(reading->note),
			       "%llu goroutines; too many different stacks: %llu of them are in "
			       "(other)",
			       (unsigned long long)stats->total, (unsigned long long)stats->folded);
	reading->metrics = metrics_new();
	for (size_t i = 0; reading->metrics && r == 0 && i < ARRAY_SIZE(rows); i++)
		r = metrics_add(reading->metrics,
				&(struct metric_point){
					.metric = &registry_metrics[METRIC_GO_GOROUTINE_STATES],
					.attributes = {rows[i].state},
					.value = (double)rows[i].count,
					.increase = NAN,
				});
	return reading->metrics ? r : -ENOMEM;
}

static int goroutines_collect_busy(struct go_goroutines *g, struct source_reading *reading,
				   struct err *err)
{
	struct golang_goroutines *gs = NULL;
	int r;

	r = agent_go_program_goroutines(g->program, g->config->goroutine_max, &gs, err);
	if (r == 0)
		r = golang_goroutines_read(gs, err);
	if (r == 0)
		r = golang_goroutines_by_state(gs, &reading->profile, err);
	if (r == 0 && goroutines_count(golang_goroutines_stats(gs), reading) < 0)
		r = err_oom(err);
	if (gs)
		golang_goroutines_trim(gs);
	return r;
}

static int go_goroutines_collect(void *state, struct source_reading *ret_reading, struct err *err)
{
	struct go_goroutines *g = state;
	struct source_reading reading = {0};
	int r;

	agent_go_program_lock(g->program);
	r = goroutines_collect_busy(g, &reading, err);
	agent_go_program_unlock(g->program);
	if (r == 0)
		*ret_reading = reading;
	else
		source_reading_release(&reading);
	return r;
}

static int go_goroutines_probe(const void *config, struct source_shares *shares,
			       struct source_target *target, struct source_answer *ret_answer,
			       struct err *err)
{
	const struct agent_go_source_config *go = config;
	int r = agent_go_program_probe(shares, target, ret_answer, err);

	if (r == 0 && ret_answer->yes && !go->goroutine_interval_ns) {
		source_answer_no(ret_answer, ERR_CAUSE_DISABLED, "goroutine profiles are off",
				 "start sonde run with --goroutine-interval 60s");
		ret_answer->of_file = true;
	}
	return r;
}

static void go_goroutines_close(void *state)
{
	struct go_goroutines *g = state;

	agent_go_program_unref(g->program);
	free(g);
}

static int go_goroutines_open(const void *config, struct source_shares *shares,
			      const struct source_target *target, void **ret_state, struct err *err)
{
	struct go_goroutines *g = calloc(1, sizeof(*g));
	struct golang_goroutines *gs;
	int r;

	if (!g)
		return err_oom(err);
	g->config = config;
	r = agent_go_program_get(shares, target, &g->program, err);
	if (r == 0) {
		agent_go_program_lock(g->program);
		r = agent_go_program_goroutines(g->program, g->config->goroutine_max, &gs, err);
		agent_go_program_unlock(g->program);
	}
	if (r < 0) {
		go_goroutines_close(g);
		return r;
	}
	*ret_state = g;
	return 0;
}

static uint64_t go_goroutines_interval(const void *config)
{
	const struct agent_go_source_config *go = config;

	return go->goroutine_interval_ns;
}

const struct source_ops agent_source_go_goroutines = {
	.name = "go-goroutines",
	.family = "go_goroutine",
	.no_is_final = true,
	.interval_ns = go_goroutines_interval,
	.probe = go_goroutines_probe,
	.open = go_goroutines_open,
	.collect = go_goroutines_collect,
	.close = go_goroutines_close,
};
