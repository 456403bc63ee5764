/* src/cli/ps/metrics.c: see metrics.h. */
#include "cli/ps/metrics.h"

#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/render/units.h"

const char *const ps_metrics_titles[PS_METRICS_COLUMNS] = {
	[PS_METRICS_LIVE] = "LIVE",   [PS_METRICS_GOAL] = "GOAL",
	[PS_METRICS_LIMIT] = "LIMIT", [PS_METRICS_GCS] = "GCS",
	[PS_METRICS_PAUSE] = "PAUSE", [PS_METRICS_CPU] = "GC%",
	[PS_METRICS_PROCS] = "PROCS", [PS_METRICS_GOROUTINES] = "GOROUTINES",
};

/* Which statistic a column shows. */
static const uint32_t ps_metrics_needs[PS_METRICS_COLUMNS] = {
	[PS_METRICS_LIVE] = GOLANG_HAS_HEAP,   [PS_METRICS_GOAL] = GOLANG_HAS_HEAP,
	[PS_METRICS_LIMIT] = GOLANG_HAS_LIMIT, [PS_METRICS_GCS] = GOLANG_HAS_GC,
	[PS_METRICS_PAUSE] = GOLANG_HAS_GC,    [PS_METRICS_CPU] = GOLANG_HAS_GC,
	[PS_METRICS_PROCS] = GOLANG_HAS_SCHED, [PS_METRICS_GOROUTINES] = GOLANG_HAS_SCHED,
};

/* Without a goal or limit, the runtime stores the largest number. */
static void ps_metrics_bytes(uint64_t bytes, const char *without, char *dst, size_t len)
{
	char label[UNITS_LABEL_LEN];

	if (bytes >= INT64_MAX)
		(void)snprintf(dst, len, "%s", without);
	else
		(void)snprintf(dst, len, "%s", units_label(label, (int64_t)bytes, "bytes", "auto"));
}

void ps_metrics_cell(const struct golang_metrics *m, enum ps_metrics_column column, char *dst,
		     size_t len)
{
	char label[UNITS_LABEL_LEN];

	(void)snprintf(dst, len, "-");
	if (!(m->has & ps_metrics_needs[column]))
		return;
	switch (column) {
	case PS_METRICS_LIVE:
		ps_metrics_bytes(m->heap_live_bytes, "-", dst, len);
		break;
	case PS_METRICS_GOAL:
		ps_metrics_bytes(m->heap_goal_bytes, "off", dst, len);
		break;
	case PS_METRICS_LIMIT:
		ps_metrics_bytes((uint64_t)m->memory_limit_bytes, "none", dst, len);
		break;
	case PS_METRICS_GCS:
		(void)snprintf(dst, len, "%llu", (unsigned long long)m->gc_count);
		break;
	case PS_METRICS_PAUSE:
		if (m->n_pauses)
			(void)snprintf(dst, len, "%s",
				       units_label(label, (int64_t)m->gc_last_pause_ns,
						   "nanoseconds", "auto"));
		break;
	case PS_METRICS_CPU:
		(void)snprintf(dst, len, "%.2f", 100 * m->gc_cpu_fraction);
		break;
	case PS_METRICS_PROCS:
		(void)snprintf(dst, len, "%u", m->gomaxprocs);
		break;
	default:
		(void)snprintf(dst, len, "%llu", (unsigned long long)m->goroutines);
		break;
	}
}

static void ps_json_uint(struct json *j, const char *key, uint64_t value, bool known)
{
	json_key(j, key);
	if (known)
		json_uint(j, value);
	else
		json_null(j);
}

static void ps_json_gc(const struct golang_metrics *m, struct json *j)
{
	bool known = m->has & GOLANG_HAS_GC;

	ps_json_uint(j, "gc_count", m->gc_count, known);
	ps_json_uint(j, "gc_forced_count", m->gc_forced_count, known);
	ps_json_uint(j, "gc_pause_total_ns", m->gc_pause_total_ns, known);
	ps_json_uint(j, "gc_last_pause_ns", m->gc_last_pause_ns, known && m->n_pauses);
	ps_json_uint(j, "gc_last_end_unix_ns", m->gc_last_end_unix_ns, known && m->n_pauses);
	json_key(j, "gc_cpu_fraction");
	json_double(j, known ? m->gc_cpu_fraction : (double)NAN);
	json_key(j, "gc_pauses_ns");
	json_array_begin(j);
	for (uint32_t i = 0; i < m->n_pauses; i++)
		json_uint(j, m->pauses_ns[i]);
	json_array_end(j);
}

void ps_metrics_json(const struct golang_metrics *m, struct json *j)
{
	bool heap = m->has & GOLANG_HAS_HEAP;
	bool limit = m->has & GOLANG_HAS_LIMIT;
	bool sched = m->has & GOLANG_HAS_SCHED;
	char missing[256];

	json_object_begin(j);
	ps_json_gc(m, j);
	ps_json_uint(j, "heap_live_bytes", m->heap_live_bytes, heap);
	ps_json_uint(j, "heap_marked_bytes", m->heap_marked_bytes, heap);
	ps_json_uint(j, "heap_goal_bytes", m->heap_goal_bytes, heap);
	json_key(j, "gc_percent");
	if (heap)
		json_int(j, m->gc_percent);
	else
		json_null(j);
	ps_json_uint(j, "memory_limit_bytes", (uint64_t)m->memory_limit_bytes, limit);
	ps_json_uint(j, "total_alloc_bytes", m->total_alloc_bytes, limit);
	ps_json_uint(j, "total_free_bytes", m->total_free_bytes, limit);
	ps_json_uint(j, "heap_inuse_bytes", m->heap_inuse_bytes, limit);
	ps_json_uint(j, "heap_released_bytes", m->heap_released_bytes, limit);
	ps_json_uint(j, "mapped_ready_bytes", m->mapped_ready_bytes, limit);
	golang_metrics_describe_missing(m, missing, sizeof(missing));
	json_key(j, "missing");
	if (missing[0])
		json_cstring(j, missing);
	else
		json_null(j);
	ps_json_uint(j, "goroutines", m->goroutines, sched);
	ps_json_uint(j, "gomaxprocs", m->gomaxprocs, sched);
	json_object_end(j);
}
