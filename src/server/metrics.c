/*
 * src/server/metrics.c: /metrics in the text format of Prometheus (version 0.0.4).
 *
 * Points come target by target, while the lines of one metric belong together. So each metric of
 * the registry gathers its own, and all are written in the order of the registry.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/label.h"
#include "java/metrics.h"
#include "pipeline/metrics.h"
#include "server/routes.h"

struct exposition {
	const struct agent_target *target; /* whose points are added; NULL: our own */
	struct buf lines[METRICS];
};

static void exposition_release(struct exposition *e)
{
	for (size_t i = 0; i < METRICS; i++)
		buf_release(&e->lines[i]);
}

/* Label values are UTF-8, which names of processes need not be: other bytes become '?'. */
static int write_label(struct buf *out, const struct label *label)
{
	int r = buf_printf(out, "%s=\"", label->key);

	for (const char *p = label->value; r == 0 && *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (c == '\\' || c == '"')
			r = buf_printf(out, "\\%c", c);
		else if (c == '\n')
			r = buf_append_str(out, "\\n");
		else
			r = buf_append_byte(out, c < 0x20 || c >= 0x7f ? '?' : c);
	}
	return r < 0 ? r : buf_append_byte(out, '"');
}

static int write_labels(struct buf *out, const struct label *labels, size_t n)
{
	int r = n ? buf_append_byte(out, '{') : 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (i > 0)
			r = buf_append_byte(out, ',');
		if (r == 0)
			r = write_label(out, &labels[i]);
	}
	return r < 0 || n == 0 ? r : buf_append_byte(out, '}');
}

/* Whole numbers have all their digits, as long as a double has them. */
static int write_value(struct buf *out, double value)
{
	if (fabs(value) >= 0x1p53)
		return buf_printf(out, " %.17g\n", value);
	return buf_printf(out, value == trunc(value) ? " %.0f\n" : " %.15g\n", value);
}

static int exposition_add(void *arg, const struct metric_point *point)
{
	const struct metric *m = point->metric;
	struct exposition *e = arg;
	struct buf *out = &e->lines[m - registry_metrics];
	double divisor = m->prometheus_divisor > 0 ? m->prometheus_divisor : 1;
	struct label labels[4 + METRIC_MAX_ATTRIBUTES];
	size_t n = 0;
	char pid[16];
	int r;

	if (!m->prometheus)
		return 0;
	if (e->target) {
		const struct proc_info *info = &e->target->target.info;

		(void)snprintf(pid, sizeof(pid), "%d", (int)info->id.pid);
		labels[n++] = (struct label){"service", info->service};
		labels[n++] = (struct label){"container", info->container};
		labels[n++] = (struct label){"pid", pid};
		labels[n++] = (struct label){"comm", info->comm};
	}
	for (size_t i = 0; i < METRIC_MAX_ATTRIBUTES; i++)
		if (point->attributes[i])
			labels[n++] = (struct label){m->labels[i], point->attributes[i]};
	r = buf_append_str(out, m->prometheus);
	if (r == 0)
		r = write_labels(out, labels, n);
	return r < 0 ? r : write_value(out, point->value / divisor);
}

static int exposition_write(const struct exposition *e, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < METRICS; i++) {
		const struct metric *m = &registry_metrics[i];

		if (!m->prometheus)
			continue;
		r = buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", m->prometheus, m->help,
			       m->prometheus, metric_kind_name(m->kind));
		if (r == 0 && e->lines[i].len)
			r = buf_append(out, e->lines[i].data, e->lines[i].len);
	}
	return r;
}

static int add(struct exposition *e, enum metric_id id, const char *attribute, double value)
{
	return exposition_add(e, &(struct metric_point){.metric = &registry_metrics[id],
							.attributes = {attribute},
							.value = value});
}

static const struct agent_target_reader *reader_of(const struct agent_target *t, const char *name)
{
	for (size_t i = 0; i < MIN(t->n_readers, ARRAY_SIZE(t->readers)); i++)
		if (strcmp(t->readers[i].reader, name) == 0)
			return &t->readers[i];
	return NULL;
}

static int add_totals(struct exposition *e, const struct agent_target *t)
{
	const struct agent_target_reader *heap = reader_of(t, "go-heap");
	int r = 0;

	if (heap && heap->answer.yes) {
		r = add(e, METRIC_GO_PROFILE_ALLOCATED, NULL, (double)t->alloc_bytes_total);
		if (r == 0)
			r = add(e, METRIC_GO_PROFILE_ALLOCATIONS, NULL,
				(double)t->alloc_objects_total);
	}
	if (r == 0 && t->cpu_ns_total)
		r = add(e, METRIC_PROCESS_CPU_TIME, NULL, (double)t->cpu_ns_total);
	return r;
}

/* The metric of each figure; of those that share one, the value of its attribute. */
static const struct figure_row {
	enum metric_id metric;
	const char *attribute;
} figure_rows[FIGURES] = {
	[FIGURE_HEAP_LIVE] = {METRIC_GO_HEAP_LIVE, NULL},
	[FIGURE_HEAP_GOAL] = {METRIC_GO_GC_GOAL, NULL},
	[FIGURE_HEAP_INUSE] = {METRIC_GO_HEAP_INUSE, NULL},
	[FIGURE_MEMORY_LIMIT] = {METRIC_GO_MEMORY_LIMIT, NULL},
	[FIGURE_GOROUTINES] = {METRIC_GO_GOROUTINES, NULL},
	[FIGURE_WAITING] = {METRIC_GO_GOROUTINES, "waiting"},
	[FIGURE_RUNNABLE] = {METRIC_GO_GOROUTINES, "runnable"},
	[FIGURE_RUNNING] = {METRIC_GO_GOROUTINES, "running"},
	[FIGURE_SYSCALL] = {METRIC_GO_GOROUTINES, "syscall"},
	[FIGURE_GOMAXPROCS] = {METRIC_GO_PROCESSORS, NULL},
	[FIGURE_GC_CYCLES] = {METRIC_GO_GC_CYCLES, NULL},
	[FIGURE_GC_PAUSE_NS] = {METRIC_GO_GC_PAUSE, NULL},
	[FIGURE_GC_CPU_PPM] = {METRIC_GO_GC_CPU_FRACTION, NULL},
	[FIGURE_BLOCK_CONTENTIONS] = {METRIC_GO_BLOCK_CONTENTIONS, NULL},
	[FIGURE_BLOCK_DELAY_NS] = {METRIC_GO_BLOCK_DELAY, NULL},
	[FIGURE_MUTEX_CONTENTIONS] = {METRIC_GO_MUTEX_CONTENTIONS, NULL},
	[FIGURE_MUTEX_DELAY_NS] = {METRIC_GO_MUTEX_DELAY, NULL},
	[FIGURE_JVM_ALLOC_BYTES] = {METRIC_JVM_ALLOCATED, NULL},
	[FIGURE_JVM_MONITOR_WAITS] = {METRIC_JVM_LOCK_CONTENTIONS, "monitor"},
	[FIGURE_JVM_MONITOR_NS] = {METRIC_JVM_LOCK_TIME, "monitor"},
	[FIGURE_JVM_PARK_WAITS] = {METRIC_JVM_LOCK_CONTENTIONS, "park"},
	[FIGURE_JVM_PARK_NS] = {METRIC_JVM_LOCK_TIME, "park"},
	[FIGURE_JVM_LOST] = {METRIC_JVM_LOST_SAMPLES, NULL},
};

static int add_figures(struct exposition *e, const struct reading_figures *f)
{
	uint32_t has = f->has;
	int r = 0;

	/* Goroutines are told by state where that is known, and else as one number. */
	if (has >> FIGURE_WAITING & 1)
		has &= ~(1U << FIGURE_GOROUTINES);
	for (size_t i = 0; r == 0 && i < FIGURES; i++)
		if (has >> i & 1)
			r = add(e, figure_rows[i].metric, figure_rows[i].attribute,
				(double)f->values[i]);
	return r;
}

/* Whether its allocations and locks are profiled, and why not. */
static int add_jvm_status(struct exposition *e, const struct agent_target *t)
{
	const struct agent_target_reader *alloc = reader_of(t, "java-alloc");

	if (!alloc || strncmp(t->target.runtime, "java ", 5) != 0)
		return 0;
	const struct metric_point point = {
		.metric = &registry_metrics[METRIC_JVM_PROFILING],
		.attributes = {alloc->answer.yes && alloc->way[0] ? alloc->way : "none",
			       alloc->answer.reason},
		.value = alloc->answer.yes,
	};

	return exposition_add(e, &point);
}

static int add_targets(struct exposition *e, struct agent *agent)
{
	_cleanup_free_ struct agent_target *targets = NULL;
	uint64_t now_ms = clock_unix_ns() / NS_PER_MS;
	size_t n = 0;
	int r = agent_targets(agent, &targets, &n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct agent_target *t = e->target = &targets[i];

		r = add_totals(e, t);
		if (r == 0)
			r = add_figures(e, &t->figures);
		if (r == 0)
			r = add_jvm_status(e, t);
		if (r == 0 && t->java)
			r = java_metrics_each(t->java, now_ms, exposition_add, e);
	}
	e->target = NULL;
	return r;
}

struct own_value {
	enum metric_id metric;
	double value;
};

static int add_own(struct exposition *e, const struct own_value *values, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = add(e, values[i].metric, NULL, values[i].value);
	return r;
}

static int add_agent(struct exposition *e, struct agent *agent)
{
	struct agent_health h = {0};

	agent_health(agent, &h);
	const struct own_value values[] = {
		{METRIC_SONDE_TARGETS, (double)h.targets},
		{METRIC_SONDE_TARGETS_PROFILED, (double)h.profiled},
		{METRIC_SONDE_INTERVALS, (double)h.intervals},
		{METRIC_SONDE_LAG, (double)h.lag_ns},
		{METRIC_SONDE_COLLECTIONS, (double)h.collections},
		{METRIC_SONDE_COLLECTION_FAILURES, (double)h.failures},
		{METRIC_SONDE_LOST_RECORDS, (double)h.lost_records},
		{METRIC_SONDE_WRITE_FAILURES, (double)h.write_failures},
		{METRIC_SONDE_CPU_SAMPLES, (double)h.cpu_samples},
		{METRIC_SONDE_CPU_SAMPLES_LOST, (double)h.cpu_samples_lost},
		{METRIC_SONDE_CPU_STACKS_CUT, (double)h.cpu_stacks_cut},
		{METRIC_SONDE_CPU_TIME, (double)h.cpu_ns},
		{METRIC_SONDE_MEMORY, (double)h.rss_bytes},
	};

	return add_own(e, values, ARRAY_SIZE(values));
}

static int add_store(struct exposition *e, struct store *store)
{
	struct store_status s = {0};

	store_status(store, &s);
	const struct own_value values[] = {
		{METRIC_SONDE_STORE_SIZE, (double)s.bytes_on_disk},
		{METRIC_SONDE_STORE_WRITING, s.writing},
		{METRIC_SONDE_STORE_DAMAGED, (double)s.damaged_files},
		{METRIC_SONDE_STORE_SAMPLES, (double)s.samples_written},
		{METRIC_SONDE_STORE_PROFILES, (double)s.profiles_written},
		{METRIC_SONDE_STORE_PROFILES_LOST, (double)s.profiles_lost},
	};

	return add_own(e, values, ARRAY_SIZE(values));
}

static int add_features(struct exposition *e, const struct context *context)
{
	struct features features;
	int r = 0;

	if (!api_features(context, &features))
		return 0;
	for (size_t i = 0; r == 0 && i < FEATURES_N; i++)
		r = add(e, METRIC_SONDE_FEATURE_ON, feature_name(i),
			features.rows[i].state == FEATURE_ON);
	return r;
}

int api_metrics(const struct request *rq, struct answer *a, struct err *err)
{
	_cleanup_(exposition_release) struct exposition e = {0};
	struct agent *agent = rq->context->agent;
	int r = add(&e, METRIC_SONDE_INFO, SONDE_VERSION, 1);

	if (r == 0)
		r = add_store(&e, rq->context->store);
	if (r == 0)
		r = add_features(&e, rq->context);
	if (r == 0 && agent)
		r = add_agent(&e, agent);
	if (r == 0 && agent)
		r = add_targets(&e, agent);
	if (r == 0)
		r = exposition_write(&e, &a->body);
	if (r < 0)
		return err_oom(err);
	a->type = "text/plain; version=0.0.4; charset=utf-8";
	return 0;
}
