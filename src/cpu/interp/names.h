/*
 * src/cpu/interp/names.h: the memory of processes with an interpreter, which holds the names of its
 * frames. Private to the symbolizer.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cpu/sampler/sampler.h"
#include "proc/mem.h"

/* Each keeps a descriptor. */
#define NAMES_MAX_INTERPS 256
/* Per process: do not keep up with one that generates new functions forever. */
#define NAMES_INTERP_READS 20000
#define NAMES_INTERP_READS_NS (60ULL * 1000000000)

struct names_interp {
	uint64_t generation;
	struct proc_mem *mem; /* NULL: it has exited, or is not readable */
	uint64_t used_ns;
	uint64_t since_ns; /* start of the minute in which reads are counted */
	uint32_t reads;
};

/* Empty if zeroed. */
struct names_interps {
	struct names_interp list[NAMES_MAX_INTERPS];
	size_t len;
	struct interp_name names[INTERP_NAMES_MAX]; /* of the last read */
};

void names_interps_release(struct names_interps *interps);
void names_interps_forget(struct names_interps *interps, uint64_t generation);
/* Fills names; returns how many. -errno as in interp_ops; -EBUSY: too many reads. */
int names_interps_read(struct names_interps *interps, const struct cpu_process *process,
		       const struct interp_frame *frame, uint64_t now_ns);
