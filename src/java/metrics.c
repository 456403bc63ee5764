/* src/java/metrics.c: see metrics.h. */
#include "java/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proc/text.h"

/* The raw counters, before converting ticks to time. */
struct metrics_raw {
	struct java_metrics m;
	uint64_t frequency; /* ticks per second */
	uint64_t classes_shared;
	uint64_t classes_shared_unloaded;
	char generations[4][24];
};

#define FIELD(f) offsetof(struct metrics_raw, f)

static const struct metrics_row {
	const char *name;
	size_t offset;
	uint32_t has;
} metrics_rows[] = {
	{"sun.os.hrt.frequency", FIELD(frequency), 0},
	{"sun.rt.createVmBeginTime", FIELD(m.start_unix_ms), JAVA_HAS_START},
	{"sun.rt.safepoints", FIELD(m.safepoints), JAVA_HAS_SAFEPOINTS},
	{"sun.rt.safepointTime", FIELD(m.safepoint_ns), 0},
	{"sun.rt.safepointSyncTime", FIELD(m.safepoint_sync_ns), 0},
	{"java.threads.live", FIELD(m.threads), JAVA_HAS_THREADS},
	{"java.threads.daemon", FIELD(m.threads_daemon), 0},
	{"java.threads.livePeak", FIELD(m.threads_peak), 0},
	{"java.threads.started", FIELD(m.threads_started), 0},
	{"java.cls.loadedClasses", FIELD(m.classes_loaded), JAVA_HAS_CLASSES},
	{"java.cls.sharedLoadedClasses", FIELD(classes_shared), 0},
	{"java.cls.unloadedClasses", FIELD(m.classes_unloaded), 0},
	{"java.cls.sharedUnloadedClasses", FIELD(classes_shared_unloaded), 0},
	{"sun.gc.metaspace.used", FIELD(m.metaspace_used_bytes), JAVA_HAS_METASPACE},
	{"sun.gc.metaspace.capacity", FIELD(m.metaspace_size_bytes), 0},
	{"sun.threads.total_gc_cpu_time", FIELD(m.gc_cpu_ns), JAVA_HAS_GC_CPU},
};

static void raw_set_plain(struct metrics_raw *raw, const struct java_counter *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics_rows); i++) {
		const struct metrics_row *row = &metrics_rows[i];
		uint64_t value = c->number < 0 ? 0 : (uint64_t)c->number;

		if (!view_eq(c->name, view_str(row->name)))
			continue;
		memcpy((char *)raw + row->offset, &value, sizeof(value));
		raw->m.has |= row->has;
		return;
	}
}

/* Strips "prefix", a digit and a dot from the name; false if it does not match. */
static bool name_take(struct view *name, const char *prefix, size_t limit, size_t *ret_number)
{
	size_t n = strlen(prefix);

	if (!view_starts_with(*name, prefix) || name->len < n + 2 || name->data[n] < '0' ||
	    name->data[n] > '9' || name->data[n + 1] != '.')
		return false;
	*ret_number = (size_t)(name->data[n] - '0');
	return *ret_number < limit && view_sub(*name, n + 2, name->len - n - 2, name);
}

static void raw_set_space(struct metrics_raw *raw, size_t generation, struct view rest,
			  const struct java_counter *c)
{
	struct java_space *s;
	size_t number;

	if (view_eq(rest, view_str("name")) && c->is_text)
		proc_text_copy(raw->generations[generation], sizeof(raw->generations[0]), c->text);
	if (!name_take(&rest, "space.", 4, &number))
		return;
	/* A slot for each, so that the order of the counters does not matter. */
	s = &raw->m.spaces[generation * 4 + number];
	if (view_eq(rest, view_str("name")) && c->is_text)
		proc_text_copy(s->name, sizeof(s->name), c->text);
	else if (view_eq(rest, view_str("used")) && c->number > 0)
		s->used_bytes = (uint64_t)c->number;
	else if (view_eq(rest, view_str("capacity")) && c->number > 0)
		s->size_bytes = (uint64_t)c->number;
}

static void raw_set_collector(struct metrics_raw *raw, size_t number, struct view rest,
			      const struct java_counter *c)
{
	struct java_collector *x = &raw->m.collectors[number];

	if (view_eq(rest, view_str("name")) && c->is_text)
		proc_text_copy(x->name, sizeof(x->name), c->text);
	else if (view_eq(rest, view_str("invocations")) && c->number > 0)
		x->count = (uint64_t)c->number;
	else if (view_eq(rest, view_str("time")) && c->number > 0)
		x->time_ns = (uint64_t)c->number;
}

static void raw_set_text(struct metrics_raw *raw, const struct java_counter *c)
{
	if (view_eq(c->name, view_str("java.property.java.vm.name")))
		proc_text_copy(raw->m.vm_name, sizeof(raw->m.vm_name), c->text);
	else if (view_eq(c->name, view_str("java.property.java.vm.version")))
		proc_text_copy(raw->m.vm_version, sizeof(raw->m.vm_version), c->text);
	else if (view_eq(c->name, view_str("java.property.java.version")))
		proc_text_copy(raw->m.version, sizeof(raw->m.version), c->text);
}

static void raw_set(struct metrics_raw *raw, const struct java_counter *c)
{
	struct view rest = c->name;
	size_t number;

	if (name_take(&rest, "sun.gc.generation.", JAVA_MAX_SPACES / 4, &number))
		raw_set_space(raw, number, rest, c);
	else if (name_take(&rest, "sun.gc.collector.", JAVA_MAX_COLLECTORS, &number))
		raw_set_collector(raw, number, rest, c);
	else if (c->is_text)
		raw_set_text(raw, c);
	else
		raw_set_plain(raw, c);
}

static uint64_t ticks_to_ns(uint64_t ticks, uint64_t frequency)
{
	unsigned __int128 ns = (unsigned __int128)ticks * 1000000000U;

	/* Since about JDK 9 a tick is a nanosecond. */
	ns /= frequency ? frequency : 1000000000U;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

/* Keeps only those with a name. */
static void raw_finish(struct metrics_raw *raw)
{
	struct java_metrics *m = &raw->m;

	for (size_t i = 0; i < JAVA_MAX_SPACES; i++) {
		struct java_space s = m->spaces[i];

		if (!s.name[0])
			continue;
		memcpy(s.generation, raw->generations[i / 4], sizeof(s.generation));
		m->spaces[m->n_spaces++] = s;
	}
	for (size_t i = 0; i < JAVA_MAX_COLLECTORS; i++) {
		struct java_collector c = m->collectors[i];

		if (!c.name[0])
			continue;
		c.time_ns = ticks_to_ns(c.time_ns, raw->frequency);
		m->collectors[m->n_collectors++] = c;
	}
	if (m->n_spaces)
		m->has |= JAVA_HAS_HEAP;
	m->safepoint_ns = ticks_to_ns(m->safepoint_ns, raw->frequency);
	m->safepoint_sync_ns = ticks_to_ns(m->safepoint_sync_ns, raw->frequency);
	m->classes_loaded += raw->classes_shared;
	m->classes_unloaded += raw->classes_shared_unloaded;
}

int java_metrics_read(const struct java_hsperf *h, struct java_metrics *ret_metrics,
		      struct err *err)
{
	struct metrics_raw raw = {};
	struct java_counter c;
	size_t at = 0;
	int r;

	while ((r = java_hsperf_next(h, &at, &c)) > 0)
		raw_set(&raw, &c);
	if (r < 0)
		return err_set(err, r, "the JVM's counters are invalid");
	raw_finish(&raw);
	*ret_metrics = raw.m;
	return 0;
}
