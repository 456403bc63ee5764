/* src/java/metrics_each.c: the figures of a JVM under the names that monitoring knows them by. */
#include <stddef.h>
#include <string.h>

#include "java/metrics.h"

struct each {
	int (*call)(void *arg, const struct java_metric *metric);
	void *arg;
};

static int each_space(const struct java_metrics *m, struct each e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_spaces; i++)
		r = e.call(e.arg, &(struct java_metric){
					  .name = "container_jvm_heap_used_bytes",
					  .type = "gauge",
					  .help = "What is in use of each space of the heap.",
					  .labels = {{"generation", m->spaces[i].generation},
						     {"space", m->spaces[i].name}},
					  .value = (double)m->spaces[i].used_bytes,
				  });
	for (size_t i = 0; r == 0 && i < m->n_spaces; i++)
		r = e.call(e.arg, &(struct java_metric){
					  .name = "container_jvm_heap_size_bytes",
					  .type = "gauge",
					  .help = "How large each space of the heap is now.",
					  .labels = {{"generation", m->spaces[i].generation},
						     {"space", m->spaces[i].name}},
					  .value = (double)m->spaces[i].size_bytes,
				  });
	return r;
}

static int each_collector(const struct java_metrics *m, struct each e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_collectors; i++)
		r = e.call(e.arg, &(struct java_metric){
					  .name = "container_jvm_gc_collections_total",
					  .type = "counter",
					  .help = "Collections of garbage.",
					  .labels = {{"gc", m->collectors[i].name}},
					  .value = (double)m->collectors[i].count,
				  });
	for (size_t i = 0; r == 0 && i < m->n_collectors; i++)
		r = e.call(e.arg, &(struct java_metric){
					  .name = "container_jvm_gc_time_seconds_total",
					  .type = "counter",
					  .help = "Time in collections of garbage.",
					  .labels = {{"gc", m->collectors[i].name}},
					  .value = (double)m->collectors[i].time_ns / 1e9,
				  });
	return r;
}

static int each_info(const struct java_metrics *m, struct each e)
{
	if (!m->version[0])
		return 0;
	return e.call(e.arg, &(struct java_metric){
				     .name = "container_jvm_info",
				     .type = "gauge",
				     .help = "The JVM and the version of its JDK; always 1.",
				     .labels = {{"vm", m->vm_name}, {"version", m->version}},
				     .value = 1,
			     });
}

#define FIELD(f) offsetof(struct java_metrics, f)

static const struct each_row {
	const char *name;
	const char *type;
	const char *help;
	uint32_t has;
	size_t offset;
	double unit; /* what it is divided by */
} each_rows[] = {
	{"container_jvm_safepoints_total", "counter", "How often all threads were stopped.",
	 JAVA_HAS_SAFEPOINTS, FIELD(safepoints), 1},
	{"container_jvm_safepoint_time_seconds_total", "counter", "Time with all threads stopped.",
	 JAVA_HAS_SAFEPOINTS, FIELD(safepoint_ns), 1e9},
	{"container_jvm_safepoint_sync_time_seconds_total", "counter",
	 "Time until all threads had stopped.", JAVA_HAS_SAFEPOINTS, FIELD(safepoint_sync_ns), 1e9},
	{"container_jvm_threads", "gauge", "Threads of Java that live.", JAVA_HAS_THREADS,
	 FIELD(threads), 1},
	{"container_jvm_threads_daemon", "gauge", "Of them, those that do not keep the JVM alive.",
	 JAVA_HAS_THREADS, FIELD(threads_daemon), 1},
	{"container_jvm_threads_started_total", "counter", "Threads of Java started.",
	 JAVA_HAS_THREADS, FIELD(threads_started), 1},
	{"container_jvm_classes_loaded_total", "counter", "Classes loaded.", JAVA_HAS_CLASSES,
	 FIELD(classes_loaded), 1},
	{"container_jvm_classes_unloaded_total", "counter", "Classes unloaded.", JAVA_HAS_CLASSES,
	 FIELD(classes_unloaded), 1},
	{"container_jvm_metaspace_used_bytes", "gauge", "What classes take.", JAVA_HAS_METASPACE,
	 FIELD(metaspace_used_bytes), 1},
	{"container_jvm_metaspace_size_bytes", "gauge", "What is set aside for classes.",
	 JAVA_HAS_METASPACE, FIELD(metaspace_size_bytes), 1},
	{"container_jvm_gc_cpu_seconds_total", "counter", "CPU time of the collector's threads.",
	 JAVA_HAS_GC_CPU, FIELD(gc_cpu_ns), 1e9},
};

static int each_plain(const struct java_metrics *m, struct each e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(each_rows); i++) {
		const struct each_row *row = &each_rows[i];
		uint64_t value;

		if (!(m->has & row->has))
			continue;
		memcpy(&value, (const char *)m + row->offset, sizeof(value));
		r = e.call(e.arg, &(struct java_metric){
					  .name = row->name,
					  .type = row->type,
					  .help = row->help,
					  .value = (double)value / row->unit,
				  });
	}
	return r;
}

static int each_uptime(const struct java_metrics *m, uint64_t now_unix_ms, struct each e)
{
	uint64_t up_ms = now_unix_ms > m->start_unix_ms ? now_unix_ms - m->start_unix_ms : 0;

	if (!(m->has & JAVA_HAS_START))
		return 0;
	return e.call(e.arg, &(struct java_metric){
				     .name = "container_jvm_uptime_seconds",
				     .type = "gauge",
				     .help = "How long the JVM runs.",
				     .value = (double)up_ms / 1e3,
			     });
}

int java_metrics_each(const struct java_metrics *m, uint64_t now_unix_ms,
		      int (*each)(void *arg, const struct java_metric *metric), void *arg)
{
	struct each e = {.call = each, .arg = arg};
	int r = each_info(m, e);

	if (r == 0)
		r = each_uptime(m, now_unix_ms, e);
	if (r == 0)
		r = each_plain(m, e);
	if (r == 0)
		r = each_space(m, e);
	return r ? r : each_collector(m, e);
}
