/* src/cpu/sampler/state.h: the sampler's own parts. Private to src/cpu/sampler*.c. */
#pragma once

#include <stdint.h>

#include "cpu/bpf/shared.h"
#include "cpu/sampler/processes.h"
#include "cpu/sampler/sampler.h"
#include "cpu/sampler/stacks.h"
#include "cpu/unwind/files.h"
#include "cpu/unwind/tables.h"

struct bpf_events;
struct bpf_rings;
struct sampler_bpf;

/* The ring buffers, in the order in which they are opened. */
enum {
	SAMPLER_RING_NOTICES,
	SAMPLER_RING_STACKS,
	SAMPLER_RING_COPIES,
};

struct cpu_sampler {
	struct cpu_sampler_options options;
	struct sampler_bpf *bpf;
	struct bpf_events *events; /* NULL: off-CPU only */
	struct bpf_rings *rings;
	bool is_urgent; /* the thread that polls, now */

	/* shared with BPF */
	struct unwind_rule *rules;
	struct sampler_file *shared_files;
	struct sampler_mapping *mappings;
	struct interp_layouts layouts;

	struct cpu_tables *tables;
	struct cpu_files *files;
	struct cpu_processes *processes;
	struct cpu_pause pause;

	struct stacks running[2];	   /* by the parity of the epoch */
	struct stacks waiting;		   /* off-CPU: a wait may end in a later epoch */
	uint64_t lost_stacks;		   /* counted in BPF, but the frames did not come */
	uint64_t lost_notices;		   /* as of the last check */
	uint64_t copy_ends[SAMPLER_END_N]; /* of the stacks that were walked here */

	/* of the last cpu_sampler_poll() */
	void (*on_event)(void *context, const struct cpu_event *event);
	void *context;

	struct sampler_copy copy; /* at hand */
	uint64_t keys[1024];
	struct sampler_counts counts[1024];
	uint64_t kernel[SAMPLER_FRAMES_MAX];
	uint64_t user[SAMPLER_FRAMES_MAX];
	struct cpu_frame frames[SAMPLER_FRAMES_MAX];
	struct interp_frame interp[SAMPLER_FRAMES_MAX];
};

/* Callbacks of the ring buffers. */
int sampler_on_notice(void *context, void *data, size_t len);
int sampler_on_stack(void *context, void *data, size_t len);
int sampler_on_copy(void *context, void *data, size_t len);
/* Of loading. */
void sampler_on_pause(void *context);

/* For the thread that polls, if it is wanted and allowed. */
void sampler_set_urgent(struct cpu_sampler *sampler, bool urgent);

/* Reads all ring buffers, and loads what is asked for there. */
int sampler_consume(struct cpu_sampler *sampler, struct err *err);
