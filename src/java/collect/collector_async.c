/*
 * src/java/collect/collector_async.c: async-profiler (async_profiler.h), if the user provides its
 * library.
 *
 * Reading may have to restart it, which waits for the JVM. So the waiting side reads, and
 * async_profiler.h keeps the data for the taking side.
 */
#include <errno.h>

#include "java/collect/async_profiler.h"
#include "java/collect/collector.h"

static int async_start(const struct proc_id *id, const struct java_collect_options *o,
		       void **ret_state, struct err *err)
{
	const struct java_async_options options = {
		.state_dir = o->recording.state_dir,
		.library = o->async_library,
		.profile = o->profile,
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

/* If it can no longer be read, it has ended, even if the JVM goes on. */
static int async_keep(void *state, struct err *err)
{
	const struct proc_id *id = &java_async_vm(state)->id;
	struct err inner = {};
	int r = java_async_read(state, &inner);

	if (r == 0)
		return 0;
	if (proc_id_gone(id))
		return err_set(err, -ESRCH, "process %d has exited", (int)id->pid);
	return err_set(err, r == -ENOMEM ? r : -ENOENT, "async-profiler has stopped: %s",
		       inner.text);
}

static int async_take(void *state, enum java_jfr_profile_kind kind,
		      const struct java_collect_window *w, struct profile **ret_profile,
		      struct err *err)
{
	return java_async_take(state, kind, w->from_ns, w->to_ns - w->from_ns, ret_profile, err);
}

static int async_stop(void *state, struct err *err)
{
	return java_async_stop(state, err);
}

static void async_stats(void *state, struct java_collect_stats *s)
{
	java_async_stats(state, &s->profiler);
}

static void async_free(void *state)
{
	java_async_free(state);
}

const struct java_collector_ops java_collector_async = {
	.name = "async-profiler",
	.has_cpu = true,
	.start = async_start,
	.vm = async_vm,
	.keep = async_keep,
	.take = async_take,
	.stop = async_stop,
	.stats = async_stats,
	.free = async_free,
};
