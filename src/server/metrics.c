/* src/server/metrics.c: /metrics in the text format of Prometheus (version 0.0.4). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "java/metrics.h"
#include "server/routes.h"

static int metric_head(struct buf *out, const char *name, const char *type, const char *help)
{
	return buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int metric_uint(struct buf *out, const char *name, const char *type, const char *help,
		       uint64_t value)
{
	int r = metric_head(out, name, type, help);

	return r < 0 ? r : buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static int metric_seconds(struct buf *out, const char *name, const char *type, const char *help,
			  int64_t ns)
{
	int r = metric_head(out, name, type, help);

	return r < 0 ? r : buf_printf(out, "%s %.9g\n", name, (double)ns / (double)NS_PER_SEC);
}

/* Label values are UTF-8, which names of processes need not be: other bytes become '?'. */
static int metric_label(struct buf *out, const char *key, const char *value)
{
	int r = buf_printf(out, "%s=\"", key);

	for (; r == 0 && *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (c == '\\' || c == '"')
			r = buf_printf(out, "\\%c", c);
		else if (c == '\n')
			r = buf_append_str(out, "\\n");
		else
			r = buf_append_byte(out, c < 0x20 || c >= 0x7f ? '?' : c);
	}
	return r < 0 ? r : buf_append_byte(out, '"');
}

struct metric_extra {
	const char *key; /* NULL: none */
	const char *value;
};

static int metric_target_labels(struct buf *out, const char *name, const struct agent_target *t,
				const struct metric_extra *extra, size_t n_extra)
{
	const struct proc_info *info = &t->target.info;
	char pid[16];
	int r = buf_printf(out, "%s{", name);

	(void)snprintf(pid, sizeof(pid), "%d", (int)info->id.pid);
	if (r == 0)
		r = metric_label(out, "service", info->service);
	if (r == 0)
		r = buf_append_byte(out, ',');
	if (r == 0)
		r = metric_label(out, "container", info->container);
	if (r == 0)
		r = buf_append_byte(out, ',');
	if (r == 0)
		r = metric_label(out, "pid", pid);
	if (r == 0)
		r = buf_append_byte(out, ',');
	if (r == 0)
		r = metric_label(out, "comm", info->comm);
	for (size_t i = 0; r == 0 && i < n_extra && extra[i].key; i++) {
		r = buf_append_byte(out, ',');
		if (r == 0)
			r = metric_label(out, extra[i].key, extra[i].value);
	}
	return r < 0 ? r : buf_append_str(out, "} ");
}

static int metric_target(struct buf *out, const char *name, const struct agent_target *t,
			 uint64_t value)
{
	int r = metric_target_labels(out, name, t, NULL, 0);

	return r < 0 ? r : buf_printf(out, "%" PRIu64 "\n", value);
}

static int metric_target_seconds(struct buf *out, const char *name, const struct agent_target *t,
				 uint64_t ns)
{
	int r = metric_target_labels(out, name, t, NULL, 0);

	return r < 0 ? r : buf_printf(out, "%.15g\n", (double)ns / (double)NS_PER_SEC);
}

static bool is_profiled(const struct agent_target *t)
{
	for (size_t i = 0; i < MIN(t->n_readers, ARRAY_SIZE(t->readers)); i++)
		if (t->readers[i].answer.yes && strcmp(t->readers[i].reader, "go-heap") == 0)
			return true;
	return false;
}

/* A figure; several in a row may share a name, and differ by a label. */
struct figure_metric {
	enum reading_figure figure;
	const char *name;
	const char *type;
	const char *help;
	double unit; /* the figure is divided by it */
	struct metric_extra extra;
};

static const struct figure_metric figure_metrics[] = {
	{FIGURE_HEAP_LIVE,
	 "container_go_heap_live_bytes",
	 "gauge",
	 "Heap that the last collection found in use, and what was allocated since.",
	 1,
	 {NULL, NULL}},
	{FIGURE_HEAP_GOAL,
	 "container_go_heap_goal_bytes",
	 "gauge",
	 "Size of the heap at which the next collection is to end.",
	 1,
	 {NULL, NULL}},
	{FIGURE_HEAP_INUSE,
	 "container_go_heap_inuse_bytes",
	 "gauge",
	 "Memory in spans that hold objects of the heap.",
	 1,
	 {NULL, NULL}},
	{FIGURE_MEMORY_LIMIT,
	 "container_go_memory_limit_bytes",
	 "gauge",
	 "GOMEMLIMIT, where one is set.",
	 1,
	 {NULL, NULL}},
	{FIGURE_WAITING,
	 "container_go_goroutines",
	 "gauge",
	 "Goroutines, by state where they are profiled.",
	 1,
	 {"state", "waiting"}},
	{FIGURE_RUNNABLE, "container_go_goroutines", "gauge", "", 1, {"state", "runnable"}},
	{FIGURE_RUNNING, "container_go_goroutines", "gauge", "", 1, {"state", "running"}},
	{FIGURE_SYSCALL, "container_go_goroutines", "gauge", "", 1, {"state", "syscall"}},
	{FIGURE_GOROUTINES, "container_go_goroutines", "gauge", "", 1, {NULL, NULL}},
	{FIGURE_GOMAXPROCS,
	 "container_go_gomaxprocs",
	 "gauge",
	 "Threads that may run Go code at the same time.",
	 1,
	 {NULL, NULL}},
	{FIGURE_GC_CYCLES,
	 "container_go_gc_cycles_total",
	 "counter",
	 "Garbage collections since the program started.",
	 1,
	 {NULL, NULL}},
	{FIGURE_GC_PAUSE_NS,
	 "container_go_gc_pause_seconds_total",
	 "counter",
	 "Time that garbage collections have stopped the program for.",
	 NS_PER_SEC,
	 {NULL, NULL}},
	{FIGURE_GC_CPU_PPM,
	 "container_go_gc_cpu_fraction",
	 "gauge",
	 "Share of its CPU time since its start that the program spent on collections.",
	 1e6,
	 {NULL, NULL}},
	{FIGURE_BLOCK_CONTENTIONS,
	 "container_go_block_contentions_total",
	 "counter",
	 "Waits in the block profile since sonde knows the process.",
	 1,
	 {NULL, NULL}},
	{FIGURE_BLOCK_DELAY_NS,
	 "container_go_block_delay_seconds_total",
	 "counter",
	 "Time waited in the block profile since sonde knows the process.",
	 NS_PER_SEC,
	 {NULL, NULL}},
	{FIGURE_MUTEX_CONTENTIONS,
	 "container_go_mutex_contentions_total",
	 "counter",
	 "Waits for mutexes in the mutex profile since sonde knows the process.",
	 1,
	 {NULL, NULL}},
	{FIGURE_MUTEX_DELAY_NS,
	 "container_go_mutex_delay_seconds_total",
	 "counter",
	 "Time waited for mutexes in the mutex profile since sonde knows the process.",
	 NS_PER_SEC,
	 {NULL, NULL}},
	{FIGURE_JVM_ALLOC_BYTES,
	 "container_jvm_alloc_bytes_total",
	 "counter",
	 "Bytes that the JVM has allocated since sonde profiles it.",
	 1,
	 {NULL, NULL}},
	{FIGURE_JVM_MONITOR_WAITS,
	 "container_jvm_lock_contentions_total",
	 "counter",
	 "Waits for locks of at least a millisecond since sonde profiles the JVM.",
	 1,
	 {"kind", "monitor"}},
	{FIGURE_JVM_PARK_WAITS,
	 "container_jvm_lock_contentions_total",
	 "counter",
	 "",
	 1,
	 {"kind", "park"}},
	{FIGURE_JVM_MONITOR_NS,
	 "container_jvm_lock_time_seconds_total",
	 "counter",
	 "Time waited for locks since sonde profiles the JVM.",
	 NS_PER_SEC,
	 {"kind", "monitor"}},
	{FIGURE_JVM_PARK_NS,
	 "container_jvm_lock_time_seconds_total",
	 "counter",
	 "",
	 NS_PER_SEC,
	 {"kind", "park"}},
	{FIGURE_JVM_LOST,
	 "container_jvm_lost_samples_total",
	 "counter",
	 "Events of the JVM's recording that are in no profile.",
	 1,
	 {NULL, NULL}},
};

/* All that there are is said by state where that is known, and else as one number. */
static bool figure_applies(const struct figure_metric *m, const struct reading_figures *f)
{
	bool has_states = f->has >> FIGURE_WAITING & 1;

	return (f->has >> m->figure & 1) && !(m->figure == FIGURE_GOROUTINES && has_states);
}

static int metric_figure(struct buf *out, const struct figure_metric *m,
			 const struct agent_target *t)
{
	int r = metric_target_labels(out, m->name, t, &m->extra, 1);

	return r < 0 ? r
		     : buf_printf(out, "%.15g\n", (double)t->figures.values[m->figure] / m->unit);
}

static int metrics_figures(struct buf *out, const struct agent_target *targets, size_t n)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < ARRAY_SIZE(figure_metrics); k++) {
		const struct figure_metric *m = &figure_metrics[k];

		if (m->help[0])
			r = metric_head(out, m->name, m->type, m->help);
		for (size_t i = 0; r == 0 && i < n; i++)
			if (figure_applies(m, &targets[i].figures))
				r = metric_figure(out, m, &targets[i]);
	}
	return r;
}

/* The series of one name belong together, and come JVM by JVM: each name has its own lines. */
#define JVM_MAX_NAMES 40

struct jvm_series {
	const struct agent_target *target;
	const char *names[JVM_MAX_NAMES];
	struct buf lines[JVM_MAX_NAMES];
	size_t n;
};

static void jvm_series_release(struct jvm_series *series)
{
	for (size_t i = 0; i < series->n; i++)
		buf_release(&series->lines[i]);
}

static int jvm_add(void *arg, const struct java_metric *m)
{
	const struct metric_extra extra[] = {{m->labels[0].key, m->labels[0].value},
					     {m->labels[1].key, m->labels[1].value}};
	struct jvm_series *series = arg;
	size_t i = 0;
	int r = 0;

	while (i < series->n && strcmp(series->names[i], m->name) != 0)
		i++;
	if (i == JVM_MAX_NAMES)
		return 0;
	if (i == series->n) {
		series->names[series->n++] = m->name;
		r = metric_head(&series->lines[i], m->name, m->type, m->help);
	}
	if (r == 0)
		r = metric_target_labels(&series->lines[i], m->name, series->target, extra,
					 ARRAY_SIZE(extra));
	return r < 0 ? r : buf_printf(&series->lines[i], "%.15g\n", m->value);
}

/* Whether its allocations and locks are profiled, and why not. */
static int jvm_status(struct buf *out, const struct agent_target *t)
{
	static const char name[] = "container_jvm_profiling_status";
	const struct reader_answer *answer = NULL;
	const char *way = "";

	for (size_t i = 0; i < MIN(t->n_readers, ARRAY_SIZE(t->readers)); i++)
		if (strcmp(t->readers[i].reader, "java-alloc") == 0) {
			answer = &t->readers[i].answer;
			way = t->readers[i].way;
		}
	if (!answer)
		return 0;
	const struct metric_extra extra[] = {{"mode", answer->yes && way[0] ? way : "none"},
					     {"reason", answer->reason}};
	int r = metric_target_labels(out, name, t, extra, ARRAY_SIZE(extra));

	return r < 0 ? r : buf_append_str(out, answer->yes ? "1\n" : "0\n");
}

static int metrics_jvms(struct buf *out, const struct agent_target *targets, size_t n)
{
	_cleanup_(jvm_series_release) struct jvm_series series = {0};
	uint64_t now_ms = clock_unix_ns() / NS_PER_MS;
	int r = metric_head(out, "container_jvm_profiling_status", "gauge",
			    "1 while allocations and locks of the JVM are profiled, else 0.");

	for (size_t i = 0; r == 0 && i < n; i++)
		if (strncmp(targets[i].target.runtime, "java ", 5) == 0)
			r = jvm_status(out, &targets[i]);
	for (size_t i = 0; r == 0 && i < n; i++) {
		series.target = &targets[i];
		if (targets[i].java)
			r = java_metrics_each(targets[i].java, now_ms, jvm_add, &series);
	}
	for (size_t i = 0; r == 0 && i < series.n; i++)
		r = buf_append(out, series.lines[i].data, series.lines[i].len);
	return r;
}

static int metrics_targets(struct buf *out, struct agent *agent)
{
	static const char bytes[] = "container_go_alloc_bytes_total";
	static const char objects[] = "container_go_alloc_objects_total";
	static const char cpu[] = "container_cpu_sampled_seconds_total";
	_cleanup_free_ struct agent_target *targets = NULL;
	size_t n = 0;
	int r = agent_targets(agent, &targets, &n);

	if (r == 0)
		r = metric_head(out, bytes, "counter",
				"Bytes that the Go process has allocated since sonde knows it.");
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_profiled(&targets[i]))
			r = metric_target(out, bytes, &targets[i], targets[i].alloc_bytes_total);
	if (r == 0)
		r = metric_head(out, objects, "counter",
				"Objects that the Go process has allocated since sonde knows it.");
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_profiled(&targets[i]))
			r = metric_target(out, objects, &targets[i],
					  targets[i].alloc_objects_total);
	if (r == 0)
		r = metric_head(out, cpu, "counter",
				"CPU time of the process by samples, since sonde knows it.");
	for (size_t i = 0; r == 0 && i < n; i++)
		if (targets[i].cpu_ns_total)
			r = metric_target_seconds(out, cpu, &targets[i], targets[i].cpu_ns_total);
	if (r == 0)
		r = metrics_figures(out, targets, n);
	return r < 0 ? r : metrics_jvms(out, targets, n);
}

struct plain_metric {
	const char *name;
	const char *type;
	const char *help;
	uint64_t value;
};

static int metrics_list(struct buf *out, const struct plain_metric *metrics, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = metric_uint(out, metrics[i].name, metrics[i].type, metrics[i].help,
				metrics[i].value);
	return r;
}

static int metrics_agent(struct buf *out, struct agent *agent)
{
	struct agent_health h = {0};
	int r;

	agent_health(agent, &h);
	const struct plain_metric list[] = {
		{"sonde_targets", "gauge", "Processes that sonde sees.", h.targets},
		{"sonde_targets_profiled", "gauge", "Processes that are profiled.", h.profiled},
		{"sonde_intervals_total", "counter", "Intervals since the start.", h.intervals},
		{"sonde_collections_total", "counter", "Profiles collected.", h.collections},
		{"sonde_collection_failures_total", "counter", "Collections that failed.",
		 h.failures},
		{"sonde_lost_records_total", "counter",
		 "Records of targets that could not be read.", h.lost_records},
		{"sonde_write_failures_total", "counter", "Profiles that a sink did not take.",
		 h.write_failures},
		{"sonde_cpu_samples_total", "counter", "Stacks sampled on all CPUs.",
		 h.cpu_samples},
		{"sonde_cpu_samples_lost_total", "counter", "Samples that got lost.",
		 h.cpu_samples_lost},
		{"sonde_cpu_stacks_cut_total", "counter",
		 "Samples whose stack could not be walked to its root.", h.cpu_stacks_cut},
		{"sonde_resident_memory_bytes", "gauge", "Resident memory of sonde.", h.rss_bytes},
	};

	r = metrics_list(out, list, ARRAY_SIZE(list));
	if (r == 0)
		r = metric_seconds(out, "sonde_lag_seconds", "gauge",
				   "How late the last interval ended.", h.lag_ns);
	if (r == 0)
		r = metric_seconds(out, "sonde_cpu_seconds_total", "counter",
				   "CPU time that sonde has used.", (int64_t)h.cpu_ns);
	return r < 0 ? r : metrics_targets(out, agent);
}

static int metrics_store(struct buf *out, struct store *store)
{
	struct store_status s = {0};

	store_status(store, &s);
	const struct plain_metric list[] = {
		{"sonde_store_bytes", "gauge", "Size of the store on disk.", s.bytes_on_disk},
		{"sonde_store_samples_total", "counter", "Samples written.", s.samples_written},
		{"sonde_store_profiles_total", "counter", "Profiles written.", s.profiles_written},
		{"sonde_store_profiles_lost_total", "counter",
		 "Profiles that could not be written.", s.profiles_lost},
		{"sonde_store_damaged_files", "gauge", "Damaged files set aside.", s.damaged_files},
		{"sonde_store_series", "gauge", "Series of metrics written in the current hour.",
		 s.series},
		{"sonde_store_series_refused_total", "counter",
		 "Points whose series was one too many.", s.series_refused},
		{"sonde_store_points_total", "counter", "Points of metrics written.",
		 s.points_written},
		{"sonde_store_points_lost_total", "counter", "Points that could not be written.",
		 s.points_lost},
		{"sonde_store_events_total", "counter", "Events written.", s.events_written},
		{"sonde_store_events_lost_total", "counter", "Events that could not be written.",
		 s.events_lost},
		{"sonde_store_damaged_blocks", "gauge", "Damaged blocks of metrics and events.",
		 s.damaged_blocks},
		{"sonde_store_writing", "gauge", "1 while the store can write, else 0.", s.writing},
	};

	return metrics_list(out, list, ARRAY_SIZE(list));
}

static int metrics_features(struct buf *out, const struct context *context)
{
	static const char name[] = "sonde_feature_on";
	struct features features;
	int r;

	if (!api_features(context, &features))
		return 0;
	r = metric_head(
		out, name, "gauge",
		"1 while the feature works for all processes, else 0; /api/health says why.");
	for (size_t i = 0; r == 0 && i < FEATURES_N; i++)
		r = buf_printf(out, "%s{feature=\"%s\"} %d\n", name, feature_name(i),
			       features.rows[i].state == FEATURE_ON);
	return r;
}

int api_metrics(const struct request *rq, struct answer *a, struct err *err)
{
	struct buf *out = &a->body;
	int r = metric_head(out, "sonde_build_info", "gauge", "The version of sonde; always 1.");

	if (r == 0)
		r = buf_append_str(out, "sonde_build_info{version=\"" SONDE_VERSION "\"} 1\n");
	if (r == 0)
		r = metrics_store(out, rq->context->store);
	if (r == 0)
		r = metrics_features(out, rq->context);
	if (r == 0 && rq->context->agent)
		r = metrics_agent(out, rq->context->agent);
	if (r < 0)
		return err_oom(err);
	a->type = "text/plain; version=0.0.4; charset=utf-8";
	return 0;
}
