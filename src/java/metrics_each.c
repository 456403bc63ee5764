/* src/java/metrics_each.c: a JVM's statistics as the registry's metrics. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "java/metrics.h"

struct each {
	int (*call)(void *arg, const struct metric_point *point);
	void *arg;
};

static int each_point(struct each e, enum metric_id id, const char *first, const char *second,
		      double value)
{
	return e.call(e.arg, &(struct metric_point){.metric = &registry_metrics[id],
						    .attributes = {first, second},
						    .value = value,
						    .increase = NAN});
}

static int each_space(const struct java_metrics *m, struct each e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_spaces; i++) {
		const struct java_space *s = &m->spaces[i];

		r = each_point(e, METRIC_JVM_MEMORY_USED, s->generation, s->name,
			       (double)s->used_bytes);
		if (r == 0)
			r = each_point(e, METRIC_JVM_MEMORY_COMMITTED, s->generation, s->name,
				       (double)s->size_bytes);
	}
	return r;
}

static int each_collector(const struct java_metrics *m, struct each e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_collectors; i++) {
		const struct java_collector *c = &m->collectors[i];

		r = each_point(e, METRIC_JVM_GC_COLLECTIONS, c->name, NULL, (double)c->count);
		if (r == 0)
			r = each_point(e, METRIC_JVM_GC_TIME, c->name, NULL, (double)c->time_ns);
	}
	return r;
}

#define FIELD(f) offsetof(struct java_metrics, f)

static const struct each_row {
	enum metric_id metric;
	uint32_t has;
	size_t offset;
} each_rows[] = {
	{METRIC_JVM_SAFEPOINTS, JAVA_HAS_SAFEPOINTS, FIELD(safepoints)},
	{METRIC_JVM_SAFEPOINT_TIME, JAVA_HAS_SAFEPOINTS, FIELD(safepoint_ns)},
	{METRIC_JVM_SAFEPOINT_SYNC_TIME, JAVA_HAS_SAFEPOINTS, FIELD(safepoint_sync_ns)},
	{METRIC_JVM_THREADS, JAVA_HAS_THREADS, FIELD(threads)},
	{METRIC_JVM_THREADS_DAEMON, JAVA_HAS_THREADS, FIELD(threads_daemon)},
	{METRIC_JVM_THREADS_STARTED, JAVA_HAS_THREADS, FIELD(threads_started)},
	{METRIC_JVM_CLASSES_LOADED, JAVA_HAS_CLASSES, FIELD(classes_loaded)},
	{METRIC_JVM_CLASSES_UNLOADED, JAVA_HAS_CLASSES, FIELD(classes_unloaded)},
	{METRIC_JVM_METASPACE_USED, JAVA_HAS_METASPACE, FIELD(metaspace_used_bytes)},
	{METRIC_JVM_METASPACE_COMMITTED, JAVA_HAS_METASPACE, FIELD(metaspace_size_bytes)},
	{METRIC_JVM_GC_CPU_TIME, JAVA_HAS_GC_CPU, FIELD(gc_cpu_ns)},
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
		r = each_point(e, row->metric, NULL, NULL, (double)value);
	}
	return r;
}

static int each_uptime(const struct java_metrics *m, uint64_t now_unix_ms, struct each e)
{
	uint64_t up_ms = now_unix_ms > m->start_unix_ms ? now_unix_ms - m->start_unix_ms : 0;

	if (!(m->has & JAVA_HAS_START))
		return 0;
	return each_point(e, METRIC_JVM_UPTIME, NULL, NULL, (double)up_ms * (double)NS_PER_MS);
}

int java_metrics_each(const struct java_metrics *m, uint64_t now_unix_ms,
		      int (*each)(void *arg, const struct metric_point *point), void *arg)
{
	struct each e = {.call = each, .arg = arg};
	int r = 0;

	if (m->version[0])
		r = each_point(e, METRIC_JVM_INFO, m->vm_name, m->version, 1);
	if (r == 0)
		r = each_uptime(m, now_unix_ms, e);
	if (r == 0)
		r = each_plain(m, e);
	if (r == 0)
		r = each_space(m, e);
	return r ? r : each_collector(m, e);
}
