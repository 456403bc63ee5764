/*
 * src/cpu/sampler/processes.h: the processes that were seen in samples, and their executable
 * mappings, laid out where BPF reads them.
 *
 * BPF asks about a process when it samples one that is not in its table; exec and exit take it
 * out again. Mappings that were replaced, and processes that ended, stay until the stacks that were
 * taken with them are drained: that is what epochs are for, one per drain.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cpu/bpf/shared.h"
#include "cpu/sampler/sampler.h"
#include "cpu/unwind/files.h"
#include "cpu/unwind/ranges.h"

struct cpu_processes; /* opaque */

/* What a forked process and its parent have in common, until either goes on to another program. */
struct cpu_layout {
	pid_t parent;
	uint64_t start_code;
	uint64_t start_stack;
};

/*
 * mappings: CPU_SAMPLER_MAPPINGS of them, where BPF reads them. processes_fd: BPF's table. All
 * borrowed.
 */
int cpu_processes_new(struct cpu_sampler_mapping *mappings, int processes_fd,
		      struct cpu_files *files, struct interp_layouts *layouts,
		      struct cpu_processes **ret_processes, struct err *err);
void cpu_processes_free(struct cpu_processes *processes); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_processes, cpu_processes_free)

/*
 * The process of a thread; made when it is new, and if it has ended meanwhile only until the next
 * drain. NULL without memory.
 */
struct cpu_process *cpu_processes_get(struct cpu_processes *processes,
				      const struct cpu_sampler_thread *thread);

/*
 * Reads the mappings of a process that was sampled at address, and asks for the tables that its
 * stack is likely to need. -ESRCH when it is gone, or another program by now.
 */
int cpu_processes_load(struct cpu_processes *processes, const struct cpu_sampler_thread *thread,
		       uint64_t address);
/* Loads the tables of all files that a process maps now. */
int cpu_processes_warm(struct cpu_processes *processes, pid_t pid, struct err *err);

/* The process ended, or what it was before its exec did. */
void cpu_processes_end(struct cpu_processes *processes, const struct cpu_sampler_thread *thread,
		       bool is_exec);

/* The file and link-time address of an absolute one; CPU_FILE_NONE where that is not known. */
uint32_t cpu_processes_resolve(const struct cpu_processes *processes,
			       const struct cpu_process *process, uint64_t address,
			       uint64_t *ret_vaddr);

/* Where BPF has them; none while they are not known. Also of a process that ended a while ago. */
struct cpu_range cpu_processes_mappings(const struct cpu_processes *processes,
					const struct cpu_sampler_thread *thread);
/* For one that was forked and is gone, or another program by now: those of its parent are its own.
 */
struct cpu_range cpu_processes_inherit(struct cpu_processes *processes,
				       const struct cpu_sampler_thread *thread,
				       const struct cpu_layout *layout);

/* Ends of which no notice came (lost ones) are found here: reads /proc for every process. */
void cpu_processes_check(struct cpu_processes *processes);

/* A drain begins: what is retired from now on is of the next epoch. */
void cpu_processes_next_epoch(struct cpu_processes *processes);
/* The drain ended: lets go of what was retired before it began. */
void cpu_processes_sweep(struct cpu_processes *processes);

uint64_t cpu_processes_lost(const struct cpu_processes *processes); /* mappings left out */
