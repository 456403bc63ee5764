/* src/node/machine.h: CPU time and memory of the whole machine, as the kernel counts them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"

/* OpenTelemetry's values of cpu.mode. */
enum node_cpu_mode {
	NODE_CPU_USER,
	NODE_CPU_NICE,
	NODE_CPU_SYSTEM,
	NODE_CPU_IDLE,
	NODE_CPU_IOWAIT,
	NODE_CPU_INTERRUPT, /* of hardware and software */
	NODE_CPU_STEAL,	    /* by the hypervisor */
	NODE_CPU_MODES,
};
extern const char *const node_cpu_mode_names[NODE_CPU_MODES];

struct node_cpu {
	uint64_t ns[NODE_CPU_MODES]; /* since boot, all CPUs together */
	unsigned int cpus;	     /* online */
};
/* Of all modes in which a CPU is not idle. */
uint64_t node_cpu_busy_ns(const struct node_cpu *cpu);

struct node_memory {
	uint64_t total;
	uint64_t available; /* could be had without swapping, by the kernel's estimate */
	uint64_t free;
	uint64_t buffers;
	uint64_t cached; /* files, and what the kernel can give back */
};

struct node_machine {
	bool has_cpu;
	bool has_memory;
	struct node_cpu cpu;
	struct node_memory memory; /* in bytes */
};
/* What cannot be read is missing. */
void node_machine_read(struct node_machine *ret_machine);

/* From the texts of /proc/stat and /proc/meminfo; -EBADMSG if something is missing. */
int node_cpu_parse(struct view text, struct node_cpu *ret_cpu);
int node_memory_parse(struct view text, struct node_memory *ret_memory);
