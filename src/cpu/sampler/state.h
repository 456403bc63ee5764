/* src/cpu/sampler/state.h: the sampler's own parts. Private to src/cpu/sampler*.c. */
#pragma once

#include <stdint.h>

#include "cpu/bpf/shared.h"
#include "cpu/sampler/processes.h"
#include "cpu/sampler/sampler.h"
#include "cpu/sampler/stacks.h"
#include "cpu/unwind/files.h"
#include "cpu/unwind/tables.h"
#include "proc/subuid.h"

struct bpf_events;
struct bpf_rings;
struct sampler_bpf;

/* The ring buffers, in the order they are opened. */
enum {
	CPU_SAMPLER_RING_NOTICES,
	CPU_SAMPLER_RING_STACKS,
	CPU_SAMPLER_RING_COPIES,
};

struct cpu_sampler {
	struct cpu_sampler_options options;
	struct sampler_bpf *bpf;
	struct bpf_events *events; /* NULL: off-CPU only */
	struct bpf_rings *rings;
	bool is_urgent; /* the polling thread, at the moment */

	/* shared with BPF */
	struct elf_unwind_rule *rules;
	struct cpu_sampler_file *shared_files;
	struct cpu_sampler_mapping *mappings;
	uint32_t n_mappings;
	struct interp_layouts layouts;

	struct proc_subuids subuids;
	struct cpu_tables *tables;
	struct cpu_files *files;
	struct cpu_processes *processes;
	struct cpu_pause pause;

	struct cpu_stacks running[2];	       /* by the parity of the epoch */
	struct cpu_stacks waiting;	       /* off-CPU: a wait may end in a later epoch */
	uint64_t lost_stacks;		       /* counted by BPF, but the frames did not arrive */
	uint64_t lost_notices;		       /* as of the last check */
	uint64_t copy_ends[CPU_SAMPLER_END_N]; /* of the stacks walked here */

	/* of the last cpu_sampler_poll() */
	void (*on_event)(void *context, const struct cpu_event *event);
	void *context;

	struct cpu_sampler_copy copy; /* the current one */
	uint64_t keys[1024];
	struct cpu_sampler_counts counts[1024];
	uint64_t kernel[CPU_SAMPLER_KERNEL_MAX];
	uint64_t user[CPU_SAMPLER_FRAMES_MAX];
	struct cpu_frame frames[CPU_SAMPLER_FRAMES_MAX];
	struct interp_frame interp[CPU_SAMPLER_FRAMES_MAX];
};

/* Callbacks of the ring buffers. */
int cpu_sampler_on_notice(void *context, void *data, size_t len);
int cpu_sampler_on_stack(void *context, void *data, size_t len);
int cpu_sampler_on_copy(void *context, void *data, size_t len);
/* Called while loading takes long. */
void cpu_sampler_on_pause(void *context);
/* Called before a file is closed, and when a process is forgotten. */
void cpu_sampler_on_close(void *context, const struct cpu_file *file);
void cpu_sampler_on_gone(void *context, const struct cpu_process *process);

/* For the polling thread, if requested and permitted. */
void cpu_sampler_set_urgent(struct cpu_sampler *sampler, bool urgent);

/* Reads all ring buffers, and loads what they request. */
int cpu_sampler_consume(struct cpu_sampler *sampler, struct err *err);
