/* src/cli/ps_cpu.h: what CPU profiles say of a process, by what runs it. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct ps_cpu {
	bool available;
	enum err_cause cause; /* when not */
	char gives[512];      /* "yes", what names are missing; or, when not available, why not */
	char remedy[256];     /* what would give more; "" for nothing */
};

/* Of all, where this machine cannot be sampled. */
void ps_cpu_refuse(enum err_cause cause, const char *reason, const char *remedy,
		   struct ps_cpu *ret_cpu);

/*
 * What one process gives where it can. runtime and version as in struct ps_entry; perf_map: it
 * has left names of its JIT-compiled code.
 */
void ps_cpu_describe(const char *runtime, const char *version, bool perf_map,
		     struct ps_cpu *ret_cpu);
