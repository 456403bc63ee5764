/*
 * src/agent/sources/go_contention.c: the readers of block and mutex profiles of Go programs that
 * have enabled them.
 *
 * A program may enable them at any time. Until then only its rate is read, after reading its
 * buckets once, so that no later event is lost.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/sources/go_program.h"
#include "base/cleanup.h"
#include "golang/contention/contention.h"
#include "profile/tree.h"

struct go_contention {
	struct agent_go_program *program;
	struct golang_contention *contention;
	enum golang_contention_kind kind;
	bool settled; /* it is off, and all earlier counts are known */
	uint64_t bad_buckets;
	char remedy[160]; /* where it is off */
};

/* Both types, in the order of golang/contention/contention.h. */
static int contention_count(const struct go_contention *g, struct source_reading *reading)
{
	static const enum metric_id ids[][2] = {
		[GOLANG_BLOCK] = {METRIC_GO_BLOCK_CONTENTIONS, METRIC_GO_BLOCK_DELAY},
		[GOLANG_MUTEX] = {METRIC_GO_MUTEX_CONTENTIONS, METRIC_GO_MUTEX_DELAY},
	};
	int r = 0;

	reading->metrics = metrics_new();
	for (size_t type = 0; reading->metrics && r == 0 && type < 2; type++)
		r = metrics_add_counter(reading->metrics, ids[g->kind][type], NAN,
					(double)profile_total(reading->profile, type));
	return reading->metrics ? r : -ENOMEM;
}

static int contention_read(struct go_contention *g, struct source_reading *reading, struct err *err)
{
	const struct golang_contention_stats *stats = golang_contention_stats(g->contention);
	int r = golang_contention_read(g->contention, err);

	if (r == 0)
		r = golang_contention_delta_profile(g->contention, &reading->profile, err);
	if (r < 0)
		return r;
	reading->lost = stats->bad_buckets - g->bad_buckets;
	g->bad_buckets = stats->bad_buckets;
	return contention_count(g, reading) < 0 ? err_oom(err) : 0;
}

static void contention_say_idle(const struct go_contention *g, struct source_reading *reading)
{
	reading->idle_cause = ERR_CAUSE_PROFILING_OFF;
	reading->idle = g->kind == GOLANG_BLOCK ? "block profiling is off in this process"
						: "mutex profiling is off in this process";
	reading->idle_remedy = g->remedy;
}

static int contention_collect_busy(struct go_contention *g, struct source_reading *reading,
				   struct err *err)
{
	int64_t rate = 0;
	int r = golang_contention_rate(g->contention, &rate, err);

	if (r == 0 && !(rate == 0 && g->settled))
		r = contention_read(g, reading, err);
	if (r < 0)
		return r;
	g->settled = rate == 0;
	if (rate == 0)
		contention_say_idle(g, reading);
	/* Off, and no new counts: nothing to write. */
	if (rate == 0 && reading->profile && profile_n_samples(reading->profile) == 0)
		source_reading_release(reading);
	return 0;
}

static int go_contention_collect(void *state, struct source_reading *ret_reading, struct err *err)
{
	struct go_contention *g = state;
	struct source_reading reading = {0};
	int r;

	agent_go_program_lock(g->program);
	r = contention_collect_busy(g, &reading, err);
	agent_go_program_unlock(g->program);
	if (r == 0)
		*ret_reading = reading;
	else
		source_reading_release(&reading);
	return r;
}

static int go_contention_probe(const void *config, struct source_shares *shares,
			       struct source_target *target, struct source_answer *ret_answer,
			       struct err *err)
{
	(void)config;
	return agent_go_program_probe(shares, target, ret_answer, err);
}

static void go_contention_close(void *state)
{
	struct go_contention *g = state;

	golang_contention_free(g->contention);
	agent_go_program_unref(g->program);
	free(g);
}

static int contention_open(struct source_shares *shares, const struct source_target *target,
			   enum golang_contention_kind kind, void **ret_state, struct err *err)
{
	struct go_contention *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_oom(err);
	g->kind = kind;
	(void)snprintf(g->remedy, sizeof(g->remedy),
		       kind == GOLANG_BLOCK
			       ? "call runtime.SetBlockProfileRate(10000) in the program, or run "
				 "sonde block %d --force-block 10000"
			       : "call runtime.SetMutexProfileFraction(100) in the program, or run "
				 "sonde mutex %d --force-mutex 100",
		       (int)target->info.id.pid);
	r = agent_go_program_get(shares, target, &g->program, err);
	if (r == 0) {
		agent_go_program_lock(g->program);
		r = golang_contention_new(agent_go_program_process(g->program), kind,
					  &g->contention, err);
		agent_go_program_unlock(g->program);
	}
	if (r < 0) {
		go_contention_close(g);
		return r;
	}
	*ret_state = g;
	return 0;
}

static int go_block_open(const void *config, struct source_shares *shares,
			 const struct source_target *target, void **ret_state, struct err *err)
{
	(void)config;
	return contention_open(shares, target, GOLANG_BLOCK, ret_state, err);
}

static int go_mutex_open(const void *config, struct source_shares *shares,
			 const struct source_target *target, void **ret_state, struct err *err)
{
	(void)config;
	return contention_open(shares, target, GOLANG_MUTEX, ret_state, err);
}

const struct source_ops agent_source_go_block = {
	.name = "go-block",
	.family = "go_block",
	.no_is_final = true,
	.probe = go_contention_probe,
	.open = go_block_open,
	.collect = go_contention_collect,
	.close = go_contention_close,
};

const struct source_ops agent_source_go_mutex = {
	.name = "go-mutex",
	.family = "go_mutex",
	.no_is_final = true,
	.probe = go_contention_probe,
	.open = go_mutex_open,
	.collect = go_contention_collect,
	.close = go_contention_close,
};
