/*
 * src/cpu/profiler.h: CPU and off-CPU profiles of processes: the sampler's stacks, with names, as
 * one struct profile per process.
 *
 * If a stack could not be walked to its end, its last frame tells why, in brackets. One thread at a
 * time.
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
	bool label_process; /* and of their process, for profiles to be merged */
	bool root_process;  /* the outermost frame is the process's name */
	bool budgets;	    /* new stacks and names are limited (cpu/budget.h) */
};

/* The activity of a process since the last collection. */
struct cpu_profile {
	const struct proc_info
		*info; /* if the process exited too soon: only comm, pid and service */
	bool offcpu;
	/*
	 * samples/count and cpu/nanoseconds; or waits/count and time/nanoseconds. Owned by the
	 * receiver.
	 */
	struct profile *profile;
	uint64_t lost;	/* samples lost for lack of room */
	uint64_t other; /* samples shown as "(other)": over budget */
};

/* Errors as in cpu_sampler_open(). */
int cpu_profiler_open(const struct cpu_profiler_options *options,
		      struct cpu_profiler **ret_profiler, struct err *err);
void cpu_profiler_close(struct cpu_profiler *profiler); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_profiler, cpu_profiler_close)

/*
 * For the polling thread: raises its priority, if permitted, and lets it wait for no process for
 * long. On a machine short of CPU, most processes would be known only after their first samples,
 * whose stacks would then be incomplete.
 */
void cpu_profiler_hurry(void);

/* Like cpu_sampler_poll(); also drains the kernel's counts before its tables fill up. */
int cpu_profiler_poll(struct cpu_profiler *profiler, int timeout_ms,
		      void (*on_event)(void *context, const struct cpu_event *event), void *context,
		      struct err *err);

/* Calls emit once per process and kind; the profiler then starts over. */
int cpu_profiler_collect(struct cpu_profiler *profiler,
			 int (*emit)(void *context, struct cpu_profile *profile), void *context,
			 struct err *err);

void cpu_profiler_losses(const struct cpu_profiler *profiler, struct cpu_losses *ret_losses);
