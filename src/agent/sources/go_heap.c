/*
 * src/agent/sources/go_heap.c: the reader of Go heap profiles, and of OOM snapshots: the heap
 * first, then goroutines if time permits.
 */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/sources/go_program.h"
#include "agent/sources/oom.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "golang/heap/heap.h"
#include "golang/rates/rates.h"
#include "profile/tree.h"

/* How long the final read may wait for one in progress; other processes are dying, too. */
#define GO_HEAP_LAST_NS (200 * NS_PER_MS)
/* The same for its snapshot. */
#define GO_HEAP_PICTURE_NS (3 * NS_PER_SEC)
/* With more goroutines than this, read none on a kill: the program does not live long enough. */
#define GO_HEAP_LAST_GOROUTINES 20000

struct go_heap {
	atomic_uint refs; /* held by the loop and by agent/sources/oom.h */
	const struct agent_go_source_config *config; /* borrowed */
	struct agent_go_program *program;
	struct golang_heap *heap;
	struct proc_id id;
	struct golang_rate_hold rate; /* the forced rate */
	uint64_t bad_buckets;	      /* refused so far: each counts as lost once */
	bool has_goroutines;	      /* read along with the final heap */
};

static int go_heap_probe(const void *config, struct source_shares *shares,
			 struct source_target *target, struct source_answer *ret_answer,
			 struct err *err)
{
	const struct agent_go_source_config *go = config;
	int r = agent_go_program_probe(shares, target, ret_answer, err);

	if (r == 0 && ret_answer->yes && go->heap == AGENT_GO_HEAP_DISABLED) {
		source_answer_no(ret_answer, ERR_CAUSE_DISABLED, "Go heap profiles are off",
				 "start sonde run with --go-heap enabled");
		ret_answer->of_file = true;
	}
	return r;
}

static void go_heap_unref(void *state)
{
	struct go_heap *g = state;

	if (atomic_fetch_sub(&g->refs, 1) > 1)
		return;
	golang_heap_free(g->heap);
	agent_go_program_unref(g->program);
	free(g);
}

static int go_heap_read_goroutines(struct go_heap *g, struct golang_goroutines **ret_goroutines,
				   struct err *err)
{
	struct golang_goroutines *gs = NULL;
	int r = agent_go_program_goroutines(g->program, g->config->goroutine_max, &gs, err);

	if (r == 0)
		r = golang_goroutines_read(gs, err);
	*ret_goroutines = gs;
	return r;
}

/* One pass: the data need not be of one GC cycle (golang/heap/heap.h), and time is short. */
static int go_heap_read_now(void *state, bool last)
{
	struct golang_goroutines *gs;
	struct go_heap *g = state;
	int r;

	if (last && !agent_go_program_lock_in_time(g->program, GO_HEAP_LAST_NS))
		return -EBUSY;
	/* Another reader is at it right now, so the data is fresh anyway. */
	if (!last && !agent_go_program_try_lock(g->program))
		return 0;
	r = golang_heap_read_last(g->heap, NULL);
	if (!last) {
		golang_heap_trim(g->heap);
		agent_go_program_unlock(g->program);
		return r;
	}
	if (r == 0 && agent_go_program_n_goroutines(g->program) <= GO_HEAP_LAST_GOROUTINES)
		g->has_goroutines = go_heap_read_goroutines(g, &gs, NULL) == 0;
	agent_go_program_unlock_last(g->program);
	return r;
}

static int go_heap_lock_picture(struct go_heap *g, struct err *err)
{
	if (agent_go_program_lock_in_time(g->program, GO_HEAP_PICTURE_NS))
		return 0;
	return err_set(err, -EBUSY, "process %d: another read is still in progress",
		       (int)g->id.pid);
}

static int go_heap_picture(void *state, struct profile **ret_profile, struct err *err)
{
	struct go_heap *g = state;
	int r = go_heap_lock_picture(g, err);

	if (r < 0)
		return r;
	r = golang_heap_snapshot(g->heap, ret_profile, err);
	golang_heap_trim(g->heap);
	agent_go_program_unlock(g->program);
	return r;
}

/* Of a killed program, those read with its heap; of others, the current ones. */
static int go_heap_goroutines(void *state, bool killed, struct profile **ret_profile,
			      struct err *err)
{
	struct golang_goroutines *gs = NULL;
	struct go_heap *g = state;
	int r = go_heap_lock_picture(g, err);

	if (r < 0)
		return r;
	if (!killed)
		r = go_heap_read_goroutines(g, &gs, err);
	else if (g->has_goroutines)
		r = agent_go_program_goroutines(g->program, g->config->goroutine_max, &gs, err);
	/* A killed program may have been read once more since, without success. */
	if (r == 0 && (!gs || golang_goroutines_count(gs) == 0))
		r = err_set(err, -ENODATA, "process %d exited before it could be read",
			    (int)g->id.pid);
	if (r == 0)
		r = golang_goroutines_profile(gs, false, NULL, NULL, ret_profile, err);
	if (gs)
		golang_goroutines_trim(gs);
	g->has_goroutines = false;
	agent_go_program_unlock(g->program);
	return r;
}

static const struct agent_oom_source_ops go_heap_oom = {
	.read = go_heap_read_now,
	.picture = go_heap_picture,
	.goroutines = go_heap_goroutines,
	.unref = go_heap_unref,
};

/* Out of memory: it has no OOM snapshot. */
static void go_heap_watch(struct go_heap *g, const struct source_target *target)
{
	if (!g->config->oom)
		return;
	atomic_fetch_add(&g->refs, 1);
	if (agent_oom_add(g->config->oom, target, &go_heap_oom, g) < 0)
		go_heap_unref(g);
}

static void go_heap_close(void *state)
{
	struct go_heap *g = state;
	int64_t now;

	if (!g)
		return;
	if (g->config->oom)
		agent_oom_remove(g->config->oom, g);
	if (g->rate.lock >= 0) {
		agent_go_program_lock(g->program);
		if (g->config->keep_rate)
			golang_rate_keep(&g->rate);
		else
			(void)golang_rate_release(&g->rate, &now, NULL);
		agent_go_program_unlock(g->program);
	}
	go_heap_unref(g);
}

static int go_heap_turn_on(struct go_heap *g, struct err *err)
{
	int64_t rate;
	int r = golang_heap_rate(g->heap, &rate, err);

	if (r < 0 || rate != 0)
		return r;
	if (g->config->heap == AGENT_GO_HEAP_FORCE && g->config->rates)
		return golang_rate_hold(&g->rate, g->config->rates,
					(struct golang_rate_of){.heap = g->heap}, &g->id,
					GOLANG_DEFAULT_RATE, err);
	return err_lack(err, -ENOTSUP, ERR_CAUSE_PROFILING_OFF,
			"start sonde run with --go-heap force",
			"memory profiling is off in this process");
}

/* With the program's lock: another reader's OOM snapshot may be in progress. */
static int go_heap_open_busy(struct go_heap *g, struct err *err)
{
	int r;

	agent_go_program_lock(g->program);
	r = golang_heap_new(agent_go_program_process(g->program), &g->heap, err);
	if (r == 0)
		r = go_heap_turn_on(g, err);
	agent_go_program_unlock(g->program);
	return r;
}

static int go_heap_open(const void *config, struct source_shares *shares,
			const struct source_target *target, void **ret_state, struct err *err)
{
	struct go_heap *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_oom(err);
	*g = (struct go_heap){
		.config = config, .id = target->info.id, .refs = 1, .rate = GOLANG_RATE_HOLD_NONE};
	r = agent_go_program_get(shares, target, &g->program, err);
	if (r == 0)
		r = go_heap_open_busy(g, err);
	if (r < 0) {
		go_heap_close(g);
		return r;
	}
	go_heap_watch(g, target);
	*ret_state = g;
	return 0;
}

/* Allocations since the previous read. */
static int go_heap_count(const struct profile *profile, struct source_reading *reading)
{
	static const struct {
		enum metric_id metric;
		enum type_id type;
	} rows[] = {
		{METRIC_GO_PROFILE_ALLOCATED, TYPE_GO_HEAP_ALLOC_SPACE},
		{METRIC_GO_PROFILE_ALLOCATIONS, TYPE_GO_HEAP_ALLOC_OBJECTS},
	};
	int r = 0;

	reading->metrics = metrics_new();
	for (size_t i = 0; reading->metrics && r == 0 && i < ARRAY_SIZE(rows); i++) {
		int type = profile_find_type(profile, registry_types[rows[i].type].name);
		int64_t total = type < 0 ? 0 : profile_total(profile, (size_t)type);

		r = metrics_add_counter(reading->metrics, rows[i].metric, NAN, (double)total);
	}
	return reading->metrics ? r : -ENOMEM;
}

static int go_heap_collect_busy(struct go_heap *g, struct source_reading *ret_reading,
				struct err *err)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	const struct golang_heap_stats *stats;
	struct source_reading reading = {};
	int r = golang_heap_read(g->heap, err);

	stats = golang_heap_stats(g->heap);
	if (r == 0 && stats->rate == 0)
		r = err_lack(err, -ENOTSUP, ERR_CAUSE_PROFILING_OFF,
			     "start sonde run with --go-heap force",
			     "the program has turned memory profiling off");
	if (r == 0)
		r = golang_heap_delta_profile(g->heap, &profile, err);
	golang_heap_trim(g->heap);
	if (r < 0)
		return r;
	if (go_heap_count(profile, &reading) < 0) {
		source_reading_release(&reading);
		return err_oom(err);
	}
	reading.profile = TAKE_PTR(profile);
	if (stats->folded)
		(void)snprintf(reading.note, sizeof(reading.note),
			       "too many different stacks: %llu of them are in (other)",
			       (unsigned long long)stats->folded);
	reading.lost = stats->bad_buckets - g->bad_buckets + stats->torn_records;
	g->bad_buckets = stats->bad_buckets;
	*ret_reading = reading;
	return 0;
}

static int go_heap_collect(void *state, struct source_reading *ret_reading, struct err *err)
{
	struct go_heap *g = state;
	int r;

	agent_go_program_lock(g->program);
	r = go_heap_collect_busy(g, ret_reading, err);
	agent_go_program_unlock(g->program);
	return r;
}

const struct source_ops agent_source_go_heap = {
	.name = "go-heap",
	.family = "go_heap",
	.probe = go_heap_probe,
	.open = go_heap_open,
	.collect = go_heap_collect,
	.close = go_heap_close,
};
