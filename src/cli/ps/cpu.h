/* src/cli/ps/cpu.h: what CPU profiles show of a process, by its runtime. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct ps_cpu {
	bool available;
	enum err_cause cause; /* if not */
	char gives[512];      /* "yes", or which names are missing; if not available, the reason */
	char remedy[256];     /* the fix; "" if none */
};

/* For all processes, if this machine cannot be sampled. */
void ps_cpu_refuse(enum err_cause cause, const char *reason, const char *remedy,
		   struct ps_cpu *ret_cpu);

/*
 * For one process, if it can. runtime and version as in struct ps_entry; perf_map: it has a perf
 * map.
 */
void ps_cpu_describe(const char *runtime, const char *version, bool perf_map,
		     struct ps_cpu *ret_cpu);
