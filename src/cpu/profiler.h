/*
 * src/cpu/profiler.h: CPU and off-CPU profiles of processes: the sampler's stacks, with names, as
 * one struct profile per process.
 *
 * A stack that could not be walked to its end has a last frame in brackets that says why; nothing
 * is guessed. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cpu/sampler/sampler.h"
#include "proc/info.h"
#include "profile/profile.h"

struct cpu_profiler; /* opaque */

struct cpu_profiler_options {
	struct cpu_sampler_options sampler;
	bool lines;	    /* source lines and inlined calls of native code, from DWARF */
	bool label_threads; /* samples carry the name of their thread */
	bool label_process; /* and of their process, for profiles that will be added up */
	bool root_process;  /* the outermost frame is the process's name */
};

/* What one process did since the last collection. */
struct cpu_profile {
	const struct proc_info *info; /* a process that ended too soon has comm, pid and service */
	bool offcpu;
	/*
	 * samples/count and cpu/nanoseconds; or waits/count and time/nanoseconds. The receiver's
	 * to free.
	 */
	struct profile *profile;
	uint64_t lost; /* samples that it had no room for */
};

/* Errors as in cpu_sampler_open(). */
int cpu_profiler_open(const struct cpu_profiler_options *options,
		      struct cpu_profiler **ret_profiler, struct err *err);
void cpu_profiler_close(struct cpu_profiler *profiler); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_profiler, cpu_profiler_close)

/*
 * For the thread that polls, where it may: on a machine that is short of CPU it would else know
 * most processes only after their first samples, which then have no whole stacks.
 */
void cpu_profiler_hurry(void);

/* As cpu_sampler_poll(); also takes over what the kernel has counted, before its tables fill. */
int cpu_profiler_poll(struct cpu_profiler *profiler, int timeout_ms,
		      void (*on_event)(void *context, const struct cpu_event *event), void *context,
		      struct err *err);

/* One call of emit per process and kind; the profiler starts anew after it. */
int cpu_profiler_collect(struct cpu_profiler *profiler,
			 int (*emit)(void *context, struct cpu_profile *profile), void *context,
			 struct err *err);

void cpu_profiler_losses(const struct cpu_profiler *profiler, struct cpu_losses *ret_losses);
