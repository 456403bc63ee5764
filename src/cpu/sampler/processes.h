/*
 * src/cpu/sampler/processes.h: the processes seen in samples, and their executable mappings, laid
 * out where BPF reads them.
 *
 * BPF asks about a process when it samples one that is not in its table; exec and exit remove it
 * again. Replaced mappings and exited processes stay until the stacks taken with them are drained.
 * Epochs, one per drain, keep track of that.
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
#include "proc/subuid.h"

struct cpu_processes; /* opaque */

/* What a forked process and its parent share, until either calls exec. */
struct cpu_layout {
	pid_t parent;
	uid_t uid; /* of the forked one */
	uint64_t start_code;
	uint64_t start_stack;
};

/* Where BPF reads them; borrowed. */
struct cpu_process_tables {
	struct cpu_sampler_mapping *mappings;
	uint32_t n_mappings;
	int fd; /* of the map of processes */
};

/*
 * subuids: who is one user; each has a share of both tables (cpu/unwind/shares.h). All but the
 * struct itself is borrowed.
 */
int cpu_processes_new(const struct cpu_process_tables *tables, struct cpu_files *files,
		      struct interp_layouts *layouts, const struct proc_subuids *subuids,
		      struct cpu_processes **ret_processes, struct err *err);
void cpu_processes_free(struct cpu_processes *processes); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_processes, cpu_processes_free)

/*
 * The process of a thread; created if new, and if it has exited meanwhile, only until the next
 * drain. NULL if out of memory.
 */
struct cpu_process *cpu_processes_get(struct cpu_processes *processes,
				      const struct cpu_sampler_thread *thread);

void cpu_processes_set_uid(const struct cpu_processes *processes, struct cpu_process *process,
			   uid_t uid);

/*
 * Reads the mappings of a process sampled at address, and requests the tables its stack is likely
 * to need. -ESRCH if it has exited or called exec; -EDQUOT if its user has too many processes.
 */
int cpu_processes_load(struct cpu_processes *processes, const struct cpu_sampler_thread *thread,
		       uint64_t address);
/* Loads the tables of all files that a process maps now. */
int cpu_processes_warm(struct cpu_processes *processes, pid_t pid, struct err *err);

/* The process, or its program before an exec, has ended. */
void cpu_processes_end(struct cpu_processes *processes, const struct cpu_sampler_thread *thread,
		       bool is_exec);

/* The file and link-time address of an absolute one; CPU_FILE_NONE if unknown. */
uint32_t cpu_processes_resolve(const struct cpu_processes *processes,
			       const struct cpu_process *process, uint64_t address,
			       uint64_t *ret_vaddr);

/* Where BPF has them; empty if unknown. Works for a while after the process has exited. */
struct cpu_range cpu_processes_mappings(const struct cpu_processes *processes,
					const struct cpu_sampler_thread *thread);
/* Whether code that it compiles at run time is known to keep frame pointers. */
bool cpu_processes_keeps_fp(const struct cpu_processes *processes,
			    const struct cpu_sampler_thread *thread);
/* Whether the pid still runs this program: BPF forgets it at its exec or exit. */
bool cpu_processes_is_current(const struct cpu_processes *processes,
			      const struct cpu_process *process);
/*
 * For a forked process that has exited or called exec: uses its parent's mappings, which are the
 * same. Empty if its own have been read, or its user has too many processes: there was no room.
 */
struct cpu_range cpu_processes_inherit(struct cpu_processes *processes,
				       const struct cpu_sampler_thread *thread,
				       const struct cpu_layout *layout);

/* Finds processes whose exit notice was lost: reads /proc for every process. */
void cpu_processes_check(struct cpu_processes *processes);

/* A drain begins: whatever is retired from now on belongs to the next epoch. */
void cpu_processes_next_epoch(struct cpu_processes *processes);
/* The drain is over: frees what was retired before it began, and calls back for each process. */
void cpu_processes_sweep(struct cpu_processes *processes,
			 void (*on_gone)(void *context, const struct cpu_process *process),
			 void *context);

uint64_t
cpu_processes_lost(const struct cpu_processes *processes); /* omitted: mappings, processes */
