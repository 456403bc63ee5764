/* src/java/metrics_each.c: the figures of a JVM under the names that monitoring knows them by. */
#include <stddef.h>

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

static int each_plain(const struct java_metrics *m, uint64_t now_unix_ms, struct each e)
{
	uint64_t up_ms = now_unix_ms > m->start_unix_ms ? now_unix_ms - m->start_unix_ms : 0;
	const struct {
		uint32_t has;
		struct java_metric metric;
	} rows[] = {
		{JAVA_HAS_START,
		 {"container_jvm_uptime_seconds",
		  "gauge",
		  "How long the JVM runs.",
		  {},
		  (double)up_ms / 1e3}},
		{JAVA_HAS_SAFEPOINTS,
		 {"container_jvm_safepoints_total",
		  "counter",
		  "How often all threads were stopped.",
		  {},
		  (double)m->safepoints}},
		{JAVA_HAS_SAFEPOINTS,
		 {"container_jvm_safepoint_time_seconds_total",
		  "counter",
		  "Time with all threads stopped.",
		  {},
		  (double)m->safepoint_ns / 1e9}},
		{JAVA_HAS_SAFEPOINTS,
		 {"container_jvm_safepoint_sync_time_seconds_total",
		  "counter",
		  "Time until all threads had stopped.",
		  {},
		  (double)m->safepoint_sync_ns / 1e9}},
		{JAVA_HAS_THREADS,
		 {"container_jvm_threads",
		  "gauge",
		  "Threads of Java that live.",
		  {},
		  (double)m->threads}},
		{JAVA_HAS_THREADS,
		 {"container_jvm_threads_daemon",
		  "gauge",
		  "Of them, those that do not keep the JVM alive.",
		  {},
		  (double)m->threads_daemon}},
		{JAVA_HAS_THREADS,
		 {"container_jvm_threads_started_total",
		  "counter",
		  "Threads of Java started.",
		  {},
		  (double)m->threads_started}},
		{JAVA_HAS_CLASSES,
		 {"container_jvm_classes_loaded_total",
		  "counter",
		  "Classes loaded.",
		  {},
		  (double)m->classes_loaded}},
		{JAVA_HAS_CLASSES,
		 {"container_jvm_classes_unloaded_total",
		  "counter",
		  "Classes unloaded.",
		  {},
		  (double)m->classes_unloaded}},
		{JAVA_HAS_METASPACE,
		 {"container_jvm_metaspace_used_bytes",
		  "gauge",
		  "What classes take.",
		  {},
		  (double)m->metaspace_used_bytes}},
		{JAVA_HAS_METASPACE,
		 {"container_jvm_metaspace_size_bytes",
		  "gauge",
		  "What is set aside for classes.",
		  {},
		  (double)m->metaspace_size_bytes}},
		{JAVA_HAS_GC_CPU,
		 {"container_jvm_gc_cpu_seconds_total",
		  "counter",
		  "CPU time of the collector's threads.",
		  {},
		  (double)m->gc_cpu_ns / 1e9}},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
		if (m->has & rows[i].has)
			r = e.call(e.arg, &rows[i].metric);
	return r;
}

int java_metrics_each(const struct java_metrics *m, uint64_t now_unix_ms,
		      int (*each)(void *arg, const struct java_metric *metric), void *arg)
{
	struct each e = {.call = each, .arg = arg};
	int r = each_info(m, e);

	if (r == 0)
		r = each_plain(m, now_unix_ms, e);
	if (r == 0)
		r = each_space(m, e);
	return r ? r : each_collector(m, e);
}
