/*
 * src/java/collect/collector_library.c: our own library in the JVM (java/jvmti/jvmti.h).
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "java/collect/collector.h"
#include "java/jvmti/jvmti.h"

/* It ends by itself if not read for this many intervals, and for at least a minute. */
#define LIBRARY_IDLE_INTERVALS 4
#define LIBRARY_IDLE_NS (60 * NS_PER_SEC)

static int library_start(const struct proc_id *id, const struct java_collect_options *o,
			 void **ret_state, struct err *err)
{
	const struct java_jvmti_options options = {
		.state_dir = o->recording.state_dir,
		.profile = o->profile,
		.stack_depth = o->recording.stack_depth,
		.idle_ns = MAX(o->interval_ns * LIBRARY_IDLE_INTERVALS, LIBRARY_IDLE_NS),
	};
	struct java_jvmti *j;
	int r = java_jvmti_start(id, &options, &j, err);

	if (r == 0)
		*ret_state = j;
	return r;
}

static const struct java_vm *library_vm(const void *state)
{
	return java_jvmti_vm(state);
}

static int library_read(void *state, struct err *err)
{
	return java_jvmti_read(state, err);
}

static int library_take(void *state, enum java_jfr_profile_kind kind,
			const struct java_collect_window *w, struct profile **ret_profile,
			struct err *err)
{
	return java_jvmti_take(state, kind, w->from_ns, w->to_ns - w->from_ns, ret_profile, err);
}

static int library_end(void *state, struct err *err)
{
	return java_jvmti_end(state, err);
}

static int library_stop(void *state, struct err *err)
{
	return java_jvmti_stop(state, err);
}

static void library_stats(void *state, struct java_collect_stats *s)
{
	struct java_jvmti_stats own;

	java_jvmti_stats(state, &own);
	memcpy(s->profiler.events, own.events, sizeof(own.events));
	s->profiler.lost = own.lost;
	s->profiler.truncated = own.truncated;
	s->profiler.no_stack = own.no_stack;
	s->profiler.idle_waits = own.idle_waits;
	s->profiler.idle_ns = own.idle_ns;
	s->dropped = own.dropped;
	s->no_parks = !own.sees_parks;
}

static void library_free(void *state)
{
	java_jvmti_free(state);
}

const struct java_collector_ops java_collector_library = {
	.name = "jvmti",
	.start = library_start,
	.vm = library_vm,
	.read = library_read,
	.take = library_take,
	.end = library_end,
	.stop = library_stop,
	.stats = library_stats,
	.free = library_free,
};
