/*
 * src/java/collect/collector.h: the collectors for a JVM, as tables of functions.
 *
 * The two sides of collect.h call them in the same way for all collectors.
 */
#pragma once

#include "java/collect/collect.h"

struct java_collector_ops {
	const char *name;
	bool has_cpu;
	int (*start)(const struct proc_id *id, const struct java_collect_options *options,
		     void **ret_state, struct err *err);
	const struct java_vm *(*vm)(const void *state);
	int (*keep)(void *state, struct err *err); /* NULL: nothing to do */
	int (*finish)(void *state, struct err *err);
	/* NULL: keep and stop read, and do their own locking. */
	int (*read)(void *state, struct err *err);
	int (*take)(void *state, enum java_jfr_profile_kind kind,
		    const struct java_collect_window *window, struct profile **ret_profile,
		    struct err *err);
	/*
	 * If there is no finish, end ends it, and stop reads the rest: nobody else reads once end
	 * has begun, and only end waits for the JVM. NULL: stop does everything.
	 */
	int (*end)(void *state, struct err *err);
	int (*stop)(void *state, struct err *err);
	/* Sets the end of the window, if known; otherwise leaves it alone. */
	void (*until)(const void *state, struct java_collect_window *window);
	void (*stats)(void *state, struct java_collect_stats *ret_stats);
	void (*free)(void *state);
};

extern const struct java_collector_ops java_collector_recorder; /* collector_recorder.c */
extern const struct java_collector_ops java_collector_library;	/* collector_library.c */
extern const struct java_collector_ops java_collector_async;	/* collector_async.c */
