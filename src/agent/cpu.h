/*
 * src/agent/cpu.h: CPU and off-CPU profiles for the loop.
 *
 * They are not read process by process: one sampler serves the whole machine, among them processes
 * that live too short for the loop to find. It has a thread of its own, because it must answer the
 * kernel at once, and because naming addresses may take its time. The loop asks at the end of an
 * interval, and what there is comes to its inbox a little later. Nobody waits for that thread:
 * should it hang, on a file of a dead network for instance, its health says so and the rest goes
 * on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cpu/sampler.h"
#include "pipeline/source.h"

struct agent_cpu; /* opaque */

struct agent_cpu_config {
	unsigned int hz;	/* samples per second and CPU */
	uint64_t offcpu_min_ns; /* waits at least this long; 0: none */
	bool lines;		/* DWARF: dear where programs come and go */
	/* Called in the sampler's thread: a program was started. */
	void (*on_exec)(void *context);
	void *context;
};

int agent_cpu_start(const struct agent_cpu_config *config, struct inbox *inbox,
		    struct agent_cpu **ret_cpu, struct err *err);
/* What was sampled up to now is to be delivered, with this time. */
void agent_cpu_ask(struct agent_cpu *cpu, struct record_time when);
/* Everything that was asked for was delivered. */
bool agent_cpu_is_idle(struct agent_cpu *cpu);
/* NULL is fine. A thread that hangs is left behind; it never touches the inbox again. */
void agent_cpu_stop(struct agent_cpu *cpu);

struct agent_cpu_health {
	uint64_t collections; /* with or without samples */
	struct cpu_losses losses;
	uint64_t lost_memory; /* samples beyond our limit of memory */
	char trouble[256];    /* "" when all is well */
};
void agent_cpu_health(struct agent_cpu *cpu, struct agent_cpu_health *ret_health);

extern const struct source_ops source_cpu;
