/*
 * src/agent/sources/cpu.h: CPU and off-CPU profiles.
 *
 * One sampler serves the whole machine, including processes too short-lived for the loop to find.
 * It has its own thread, because it must respond to the kernel at once, and because symbolizing may
 * take a while. The loop asks at the end of an interval; the profiles arrive in its inbox a little
 * later. Nobody waits for that thread: if it hangs, for example on a file of a dead network, its
 * health says so and everything else goes on.
 *
 * A collection that comes late covers several intervals. Its samples have no time of their own, so
 * they are spread evenly over these. Each interval that was covered is said to be, in sonde's own
 * metrics: where a process has no samples in it, it did not run. One of which many samples were
 * lost is not covered.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cpu/sampler/sampler.h"
#include "pipeline/source.h"

struct agent_cpu; /* opaque */

struct agent_cpu_config {
	unsigned int hz;	/* samples per second per CPU */
	uint64_t offcpu_min_ns; /* waits at least this long; 0: none */
	bool lines;		/* DWARF: expensive if programs come and go */
	uint64_t interval_ns;	/* of collections; 0: whatever is asked for */
	struct proc_info self;	/* whose metrics say what was covered */
	/* Called in the sampler's thread after an exec. */
	void (*on_exec)(void *context);
	void *context;
};

int agent_cpu_start(const struct agent_cpu_config *config, struct inbox *inbox,
		    struct agent_cpu **ret_cpu, struct err *err);
/* Delivers what was sampled so far, with this time. */
void agent_cpu_ask(struct agent_cpu *cpu, struct record_time when);
/* Everything requested was delivered. */
bool agent_cpu_is_idle(struct agent_cpu *cpu);
/* NULL is fine. A hanging thread is abandoned; it never touches the inbox again. */
void agent_cpu_stop(struct agent_cpu *cpu);

struct agent_cpu_health {
	uint64_t collections; /* with or without samples */
	struct cpu_losses losses;
	uint64_t lost_memory; /* samples over our memory limit */
	uint64_t other;	      /* samples shown as "(other)": their stacks were over budget */
	char trouble[256];    /* "" if all is well */
};
void agent_cpu_health(struct agent_cpu *cpu, struct agent_cpu_health *ret_health);

extern const struct source_ops agent_source_cpu;
