/*
 * src/java/collect_async.c: async-profiler (async.h), where the user gives its library.
 *
 * Reading it may have to begin it anew, which waits for the JVM: so it is the side that waits which
 * reads.
 */
#include <errno.h>

#include "java/async.h"
#include "java/collect_way.h"

static int async_start(const struct proc_id *id, const struct java_collect_options *o,
		       void **ret_state, struct err *err)
{
	const struct java_async_options options = {
		.state_dir = o->recording.state_dir,
		.library = o->async_library,
		.profile = o->profile,
		.lock_ns = o->recording.lock_threshold_ns,
	};
	struct java_async *a;
	int r = java_async_start(id, &options, &a, err);

	if (r == 0)
		*ret_state = a;
	return r;
}

static const struct java_vm *async_vm(const void *state)
{
	return java_async_vm(state);
}

static int async_read(void *state, struct err *err)
{
	return java_async_read(state, err);
}

static int async_take(void *state, enum jfr_profile_kind kind, const struct java_collect_window *w,
		      struct profile **ret_profile, struct err *err)
{
	return java_async_take(state, kind, w->from_ns, w->to_ns - w->from_ns, ret_profile, err);
}

static int async_stop(void *state, struct err *err)
{
	return java_async_stop(state, err);
}

static void async_stats(const void *state, struct java_collect_stats *s)
{
	java_async_stats(state, &s->profiler);
}

static void async_free(void *state)
{
	java_async_free(state);
}

const struct java_way_ops java_way_async = {
	.name = "async-profiler",
	.has_cpu = true,
	.reads_in_keep = true,
	.start = async_start,
	.vm = async_vm,
	.read = async_read,
	.take = async_take,
	.stop = async_stop,
	.stats = async_stats,
	.free = async_free,
};
