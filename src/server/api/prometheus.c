/*
 * src/server/api/prometheus.c: /metrics in Prometheus text format (version 0.0.4).
 *
 * Points come target by target, but the lines of one metric must be adjacent. So each metric of the
 * registry collects its own lines, and they are written in the order of the registry.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/label.h"
#include "java/metrics.h"
#include "pipeline/metrics.h"
#include "server/api/routes.h"

struct exposition {
	const struct agent_target *target; /* whose points are added; NULL: sonde's own */
	struct buf lines[METRICS];
};

static void exposition_release(struct exposition *e)
{
	for (size_t i = 0; i < METRICS; i++)
		buf_release(&e->lines[i]);
}

/* Label values must be UTF-8, but process names need not be: other bytes become '?'. */
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

/* Whole numbers are printed exactly, as far as a double can hold them. */
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

static const struct agent_target_source *reader_of(const struct agent_target *t, const char *name)
{
	for (size_t i = 0; i < MIN(t->n_sources, ARRAY_SIZE(t->sources)); i++)
		if (strcmp(t->sources[i].source, name) == 0)
			return &t->sources[i];
	return NULL;
}

/* Whether its allocations and locks are profiled, and if not, why. */
static int add_jvm_status(struct exposition *e, const struct agent_target *t)
{
	const struct agent_target_source *alloc = reader_of(t, "java-alloc");

	if (!alloc || strncmp(t->target.runtime, "java ", 5) != 0)
		return 0;
	const struct metric_point point = {
		.metric = &registry_metrics[METRIC_JVM_PROFILING],
		.attributes = {alloc->answer.yes && alloc->collector[0] ? alloc->collector : "none",
			       alloc->answer.reason},
		.value = alloc->answer.yes,
	};

	return exposition_add(e, &point);
}

static bool has_metric(const struct metrics *m, enum metric_id id)
{
	for (size_t i = 0; i < m->len; i++)
		if (m->points[i].metric == &registry_metrics[id])
			return true;
	return false;
}

static int add_metrics(struct exposition *e, const struct metrics *m)
{
	bool states = has_metric(m, METRIC_GO_GOROUTINE_STATES);
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->len; i++) {
		const struct metric_point *p = &m->points[i];

		if (p->metric == &registry_metrics[METRIC_PROCESS_MEMORY] && e->target &&
		    strncmp(e->target->target.runtime, "go1", 3) == 0)
			r = add(e, METRIC_GO_MEMORY_RESIDENT, NULL, p->value);
		if (r < 0)
			break;
		/* Goroutines by state if known, otherwise as one number. */
		if (p->metric != &registry_metrics[METRIC_GO_GOROUTINES])
			r = exposition_add(e, p);
		else if (!states)
			r = add(e, METRIC_GO_GOROUTINE_STATES, NULL, p->value);
	}
	return r;
}

static int add_targets(struct exposition *e, struct agent *agent)
{
	_cleanup_(agent_targets_release) struct agent_targets targets = {};
	int r = agent_targets(agent, &targets);

	for (size_t i = 0; r == 0 && i < targets.len; i++) {
		const struct agent_target *t = e->target = &targets.items[i];

		r = add_metrics(e, t->metrics);
		if (r == 0)
			r = add_jvm_status(e, t);
	}
	e->target = NULL;
	return r;
}

static int add_machine(struct exposition *e, struct agent *agent)
{
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();
	int r = m ? agent_machine(agent, m) : -ENOMEM;

	return r < 0 ? r : add_metrics(e, m);
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
		{METRIC_SONDE_RECORDS_DROPPED, (double)h.records_dropped},
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
		{METRIC_SONDE_STORE_SERIES, (double)s.series},
		{METRIC_SONDE_STORE_SERIES_REFUSED, (double)s.series_refused},
		{METRIC_SONDE_STORE_POINTS, (double)s.points_written},
		{METRIC_SONDE_STORE_POINTS_LOST, (double)s.points_lost},
		{METRIC_SONDE_STORE_EVENTS, (double)s.events_written},
		{METRIC_SONDE_STORE_EVENTS_LOST, (double)s.events_lost},
		{METRIC_SONDE_STORE_DAMAGED_BLOCKS, (double)s.damaged_blocks},
		{METRIC_SONDE_STORE_CORRECTED_PAGES, (double)s.corrected_pages},
		{METRIC_SONDE_STORE_OVER_BUDGET, (double)s.over_budget},
	};

	return add_own(e, values, ARRAY_SIZE(values));
}

static int add_features(struct exposition *e, const struct server_context *context)
{
	struct features features;
	int r = 0;

	if (!server_api_features(context, &features))
		return 0;
	for (size_t i = 0; r == 0 && i < FEATURES_N; i++)
		r = add(e, METRIC_SONDE_FEATURE_ON, features_name(i),
			features.rows[i].state == FEATURES_ON);
	return r;
}

int server_api_metrics(const struct server_request *rq, struct server_answer *a, struct err *err)
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
	if (r == 0 && agent)
		r = add_machine(&e, agent);
	if (r == 0)
		r = exposition_write(&e, &a->body);
	if (r < 0)
		return err_oom(err);
	a->type = "text/plain; version=0.0.4; charset=utf-8";
	return 0;
}
