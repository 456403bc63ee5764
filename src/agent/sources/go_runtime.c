/*
 * src/agent/sources/go_runtime.c: the source of Go runtime statistics: heap, garbage collections,
 * goroutines.
 *
 * What a release lacks is omitted.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "agent/sources/go_program.h"
#include "base/cleanup.h"
#include "golang/metrics/metrics.h"
#include "pipeline/registry/registry.h"

#define PPM 1000000

struct go_runtime {
	struct agent_go_program *program;
	struct golang_metrics_reader *reader;
};

/* A metric, and the source of its value. */
struct runtime_row {
	enum metric_id metric;
	uint32_t needs; /* GOLANG_HAS_* */
	uint64_t (*value)(const struct golang_metrics *m);
};

static uint64_t heap_live(const struct golang_metrics *m)
{
	return m->heap_live_bytes;
}

static uint64_t heap_goal(const struct golang_metrics *m)
{
	return m->heap_goal_bytes;
}

static uint64_t heap_inuse(const struct golang_metrics *m)
{
	return m->heap_inuse_bytes;
}

static uint64_t memory_used(const struct golang_metrics *m)
{
	return m->mapped_ready_bytes;
}

/* 0 if no limit is set: the metric is omitted. */
static uint64_t memory_limit(const struct golang_metrics *m)
{
	return m->memory_limit_bytes > 0 && m->memory_limit_bytes < INT64_MAX
		       ? (uint64_t)m->memory_limit_bytes
		       : 0;
}

static uint64_t goroutines(const struct golang_metrics *m)
{
	return m->goroutines;
}

static uint64_t gomaxprocs(const struct golang_metrics *m)
{
	return m->gomaxprocs;
}

static uint64_t gc_cpu_ppm(const struct golang_metrics *m)
{
	double fraction = m->gc_cpu_fraction;

	return fraction > 0 && fraction <= 1 ? (uint64_t)lround(fraction * PPM) : 0;
}

static uint64_t gc_cycles(const struct golang_metrics *m)
{
	return m->gc_count;
}

static uint64_t gc_pause(const struct golang_metrics *m)
{
	return m->gc_pause_total_ns;
}

static uint64_t total_alloc(const struct golang_metrics *m)
{
	return m->total_alloc_bytes;
}

static const struct runtime_row rows[] = {
	{METRIC_GO_HEAP_LIVE, GOLANG_HAS_HEAP, heap_live},
	{METRIC_GO_GC_GOAL, GOLANG_HAS_HEAP, heap_goal},
	{METRIC_GO_HEAP_INUSE, GOLANG_HAS_LIMIT, heap_inuse},
	{METRIC_GO_MEMORY_USED, GOLANG_HAS_LIMIT, memory_used},
	{METRIC_GO_MEMORY_LIMIT, GOLANG_HAS_LIMIT, memory_limit},
	{METRIC_GO_GOROUTINES, GOLANG_HAS_SCHED, goroutines},
	{METRIC_GO_PROCESSORS, GOLANG_HAS_SCHED, gomaxprocs},
	{METRIC_GO_GC_CPU_FRACTION, GOLANG_HAS_GC, gc_cpu_ppm},
	{METRIC_GO_GC_CYCLES, GOLANG_HAS_GC, gc_cycles},
	{METRIC_GO_GC_PAUSE, GOLANG_HAS_GC, gc_pause},
	{METRIC_GO_ALLOCATED, GOLANG_HAS_LIMIT, total_alloc},
};

static bool row_applies(const struct runtime_row *row, const struct golang_metrics *m)
{
	return (m->has & row->needs) == row->needs &&
	       (row->value != memory_limit || memory_limit(m) != 0);
}

static int row_add(const struct runtime_row *row, const struct golang_metrics *m,
		   struct metrics *to)
{
	double value = (double)row->value(m);

	if (registry_metrics[row->metric].kind == METRIC_GAUGE)
		return metrics_add_gauge(to, row->metric, value);
	return metrics_add_counter(to, row->metric, value, NAN);
}

static int runtime_metrics(const struct golang_metrics *m, struct metrics **ret_metrics)
{
	_cleanup_(metrics_freep) struct metrics *to = metrics_new();
	int r = to ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
		if (row_applies(&rows[i], m))
			r = row_add(&rows[i], m, to);
	if (r == 0)
		*ret_metrics = TAKE_PTR(to);
	return r;
}

static int go_runtime_collect(void *state, struct source_reading *ret_reading, struct err *err)
{
	struct go_runtime *g = state;
	struct source_reading reading = {0};
	struct golang_metrics m;
	int r;

	agent_go_program_lock(g->program);
	r = golang_metrics_read(g->reader, &m, err);
	if (r == 0 && (m.has & GOLANG_HAS_SCHED))
		agent_go_program_set_n_goroutines(g->program, m.goroutines);
	agent_go_program_unlock(g->program);
	if (r < 0)
		return r;
	if (runtime_metrics(&m, &reading.metrics) < 0)
		return err_oom(err);
	golang_metrics_describe_missing(&m, reading.note, sizeof(reading.note));
	*ret_reading = reading;
	return 0;
}

static int go_runtime_probe(const void *config, struct source_shares *shares,
			    struct source_target *target, struct source_answer *ret_answer,
			    struct err *err)
{
	(void)config;
	return agent_go_program_probe(shares, target, ret_answer, err);
}

static void go_runtime_close(void *state)
{
	struct go_runtime *g = state;

	golang_metrics_free(g->reader);
	agent_go_program_unref(g->program);
	free(g);
}

static int go_runtime_open(const void *config, struct source_shares *shares,
			   const struct source_target *target, void **ret_state, struct err *err)
{
	struct go_runtime *g = calloc(1, sizeof(*g));
	int r;

	(void)config;
	if (!g)
		return err_oom(err);
	r = agent_go_program_get(shares, target, &g->program, err);
	if (r == 0) {
		agent_go_program_lock(g->program);
		r = golang_metrics_new(agent_go_program_process(g->program), &g->reader, err);
		agent_go_program_unlock(g->program);
	}
	if (r < 0) {
		go_runtime_close(g);
		return r;
	}
	*ret_state = g;
	return 0;
}

const struct source_ops agent_source_go_runtime = {
	.name = "go-runtime",
	.family = "go_runtime",
	.no_is_final = true,
	.probe = go_runtime_probe,
	.open = go_runtime_open,
	.collect = go_runtime_collect,
	.close = go_runtime_close,
};
