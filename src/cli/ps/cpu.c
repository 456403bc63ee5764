/*
 * src/cli/ps/cpu.c: see cpu.h.
 *
 * Measured: Node 20 always has complete stacks. HotSpot 17 uses the frame pointer as a general
 * register, so stacks end at the first compiled method unless told otherwise. CPython has complete
 * stacks, with Python functions if its layout is known (cpu/interp).
 */
#include "cli/ps/cpu.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cpu/interp/interp.h"

static void cpu_set(struct ps_cpu *c, bool available, const char *gives, const char *remedy)
{
	c->available = available;
	(void)snprintf(c->gives, sizeof(c->gives), "%s", gives);
	(void)snprintf(c->remedy, sizeof(c->remedy), "%s", remedy);
}

void ps_cpu_refuse(enum err_cause cause, const char *reason, const char *remedy,
		   struct ps_cpu *ret_cpu)
{
	cpu_set(ret_cpu, false, reason, remedy);
	ret_cpu->cause = cause;
}

/* "3.11" or "3.11.2", if its frames can be read. */
void ps_cpu_describe(const char *runtime, const char *version, bool perf_map,
		     struct ps_cpu *ret_cpu)
{
	static const struct {
		const char *runtime;
		const char *with_map;
		const char *map_remedy;
		const char *without;
		const char *remedy;
	} rows[] = {
		{"node", "yes, with its perf map", "", "no JavaScript names",
		 "start Node with --perf-basic-prof"},
		{"java", "yes, with its perf map",
		 "complete stacks need -XX:+PreserveFramePointer; code compiled later has no names",
		 "no Java names",
		 "use sonde cpu PID --java, or jcmd PID Compiler.perfmap (JDK 17+); complete "
		 "stacks need -XX:+PreserveFramePointer"},
		{"python", "C functions and its perf map", "", "C functions only",
		 "Python functions need CPython 3.9 to 3.13"},
	};

	cpu_set(ret_cpu, true, "yes", "");
	if (interp_is_supported(runtime, version))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(runtime, rows[i].runtime) != 0)
			continue;
		if (perf_map)
			cpu_set(ret_cpu, true, rows[i].with_map, rows[i].map_remedy);
		else
			cpu_set(ret_cpu, true, rows[i].without, rows[i].remedy);
	}
}
