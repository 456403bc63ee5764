/*
 * src/agent/go_runtime.c: the reader of what the Go runtime knows of itself: its heap, its garbage
 * collections, its goroutines.
 *
 * Figures have no stack; each is the value of one frame, so that they are stored, summed and drawn
 * like all other types. What a release does not have is left out.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "agent/go_program.h"
#include "agent/reader.h"
#include "base/cleanup.h"
#include "golang/metrics.h"
#include "pipeline/registry.h"

#define GO_RUNTIME_FRAME "[go runtime]"
#define PPM 1000000

struct go_runtime {
	struct go_program *program;
	struct golang_metrics_reader *reader;
	uint64_t before[PROFILE_MAX_TYPES]; /* what each row was in the last reading */
	bool has_before;
};

/* One type of the profile, and where its value comes from. */
struct runtime_row {
	enum metric_id metric;
	uint32_t needs; /* GOLANG_HAS_* */
	int figure;	/* for /metrics, or -1 */
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

/* 0 where none is set: then it is left out. */
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
	{METRIC_GO_HEAP_LIVE, GOLANG_HAS_HEAP, FIGURE_HEAP_LIVE, heap_live},
	{METRIC_GO_GC_GOAL, GOLANG_HAS_HEAP, FIGURE_HEAP_GOAL, heap_goal},
	{METRIC_GO_HEAP_INUSE, GOLANG_HAS_LIMIT, FIGURE_HEAP_INUSE, heap_inuse},
	{METRIC_GO_MEMORY_LIMIT, GOLANG_HAS_LIMIT, FIGURE_MEMORY_LIMIT, memory_limit},
	{METRIC_GO_GOROUTINES, GOLANG_HAS_SCHED, FIGURE_GOROUTINES, goroutines},
	{METRIC_GO_PROCESSORS, GOLANG_HAS_SCHED, FIGURE_GOMAXPROCS, gomaxprocs},
	{METRIC_GO_GC_CPU_FRACTION, GOLANG_HAS_GC, FIGURE_GC_CPU_PPM, gc_cpu_ppm},
	{METRIC_GO_GC_CYCLES, GOLANG_HAS_GC, FIGURE_GC_CYCLES, gc_cycles},
	{METRIC_GO_GC_PAUSE, GOLANG_HAS_GC, FIGURE_GC_PAUSE_NS, gc_pause},
	{METRIC_GO_ALLOCATED, GOLANG_HAS_LIMIT, -1, total_alloc},
};

static_assert(ARRAY_SIZE(rows) <= PROFILE_MAX_TYPES, "a type for each row");

static bool row_applies(const struct runtime_row *row, const struct golang_metrics *m)
{
	return (m->has & row->needs) == row->needs &&
	       (row->value != memory_limit || memory_limit(m) != 0);
}

/* Forged or torn counters that went back have not grown. */
static int64_t row_value(struct go_runtime *g, size_t row, const struct golang_metrics *m)
{
	uint64_t value = rows[row].value(m);
	uint64_t before = g->has_before ? g->before[row] : value;

	g->before[row] = value;
	if (metric_mode(&registry_metrics[rows[row].metric]) == MODE_DELTA)
		value = value > before ? value - before : 0;
	return (int64_t)MIN(value, (uint64_t)INT64_MAX);
}

static int add_frame(struct profile *p, uint32_t *ret_stack)
{
	struct profile_function f = {0};
	struct profile_line line = {0};
	uint32_t location;
	int r = profile_add_string(p, view_str(GO_RUNTIME_FRAME), &f.name);

	f.system_name = f.name;
	if (r == 0)
		r = profile_add_function(p, &f, &line.function);
	if (r == 0)
		r = profile_add_location(p, 0, PROFILE_NO_MAPPING, &line, 1, &location);
	return r < 0 ? r : profile_add_stack(p, &location, 1, ret_stack);
}

static int runtime_profile(struct go_runtime *g, const struct golang_metrics *m,
			   struct reading *reading)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	int64_t values[ARRAY_SIZE(rows)];
	uint32_t stack, n = 0;
	int r = p ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++) {
		if (!row_applies(&rows[i], m))
			continue;
		values[n++] = row_value(g, i, m);
		r = registry_stream_add(p, rows[i].metric);
		if (rows[i].figure < 0)
			continue;
		reading->figures.has |= 1U << rows[i].figure;
		reading->figures.values[rows[i].figure] = rows[i].value(m);
	}
	if (r == 0)
		r = add_frame(p, &stack);
	if (r == 0)
		r = profile_add_sample(p, stack, values, NULL, 0);
	if (r == 0)
		reading->profile = TAKE_PTR(p);
	return r;
}

static int go_runtime_collect(void *state, struct reading *ret_reading, struct err *err)
{
	struct go_runtime *g = state;
	struct reading reading = {0};
	struct golang_metrics m;
	int r;

	go_program_lock(g->program);
	r = golang_metrics_read(g->reader, &m, err);
	if (r == 0 && (m.has & GOLANG_HAS_SCHED))
		go_program_set_n_goroutines(g->program, m.goroutines);
	go_program_unlock(g->program);
	if (r < 0)
		return r;
	if (runtime_profile(g, &m, &reading) < 0)
		return err_oom(err);
	g->has_before = true;
	*ret_reading = reading;
	return 0;
}

static int go_runtime_probe(const struct reader_context *context, struct reader_share *share,
			    struct target *target, struct reader_answer *ret_answer,
			    struct err *err)
{
	(void)context;
	return go_program_probe(share, target, ret_answer, err);
}

static void go_runtime_close(void *state)
{
	struct go_runtime *g = state;

	golang_metrics_free(g->reader);
	go_program_unref(g->program);
	free(g);
}

static int go_runtime_open(const struct reader_context *context, struct reader_share *share,
			   const struct target *target, void **ret_state, struct err *err)
{
	struct go_runtime *g = calloc(1, sizeof(*g));
	int r;

	(void)context;
	if (!g)
		return err_oom(err);
	r = go_program_get(share, target, &g->program, err);
	if (r == 0) {
		go_program_lock(g->program);
		r = golang_metrics_new(go_program_process(g->program), &g->reader, err);
		go_program_unlock(g->program);
	}
	if (r < 0) {
		go_runtime_close(g);
		return r;
	}
	*ret_state = g;
	return 0;
}

const struct reader_ops reader_go_runtime = {
	.name = "go-runtime",
	.family = "go_runtime",
	.no_is_final = true,
	.probe = go_runtime_probe,
	.open = go_runtime_open,
	.collect = go_runtime_collect,
	.close = go_runtime_close,
};
