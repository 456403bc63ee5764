/*
 * src/cpu/interp/names.h: the memory of processes with an interpreter, which has the names of its
 * frames. Only for the files of names.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cpu/sampler/sampler.h"
#include "proc/mem.h"

/* Each keeps a descriptor. */
#define NAMES_MAX_INTERPS 256
/* Of one process: one that makes up ever new functions is not followed for ever. */
#define NAMES_INTERP_READS 20000
#define NAMES_INTERP_READS_NS (60ULL * 1000000000)

struct names_interp {
	uint64_t generation;
	struct proc_mem *mem; /* NULL: it is gone, or may not be read */
	uint64_t used_ns;
	uint64_t since_ns; /* of reads, which are counted minute by minute */
	uint32_t reads;
};

/* Zeroed is empty. */
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
