/*
 * src/java/collect/collector.h: the ways to collect from a JVM, as rows of functions.
 *
 * Which side of collect.h calls what, and when, is the same for all.
 */
#pragma once

#include "java/collect/collect.h"

struct java_collector_ops {
	const char *name;
	bool has_cpu;
	int (*start)(const struct proc_id *id, const struct java_collect_options *options,
		     void **ret_state, struct err *err);
	const struct java_vm *(*vm)(const void *state);
	int (*keep)(void *state, struct err *err); /* NULL: nothing is to be done */
	int (*finish)(void *state, struct err *err);
	/* NULL: keep and stop read, and say by themselves what must not meet. */
	int (*read)(void *state, struct err *err);
	int (*take)(void *state, enum java_jfr_profile_kind kind,
		    const struct java_collect_window *window, struct profile **ret_profile,
		    struct err *err);
	/*
	 * Where there is nothing to finish it, end does, and stop reads the rest: nobody else reads
	 * after end has begun, and only end waits for the JVM. NULL: stop does all of it.
	 */
	int (*end)(void *state, struct err *err);
	int (*stop)(void *state, struct err *err);
	/* Until when what was read happened, where it is known; else it is left alone. */
	void (*until)(const void *state, struct java_collect_window *window);
	void (*stats)(void *state, struct java_collect_stats *ret_stats);
	void (*free)(void *state);
};

extern const struct java_collector_ops java_collector_recorder; /* collector_recorder.c */
extern const struct java_collector_ops java_collector_library;	/* collector_library.c */
extern const struct java_collector_ops java_collector_async;	/* collector_async.c */
