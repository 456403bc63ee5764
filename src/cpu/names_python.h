/*
 * src/cpu/names_python.h: the memory of processes that run Python, in which the names of their code
 * objects are. For the files of names only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cpu/sampler.h"
#include "proc/mem.h"
#include "python/code.h"

/* Each keeps a descriptor. */
#define NAMES_MAX_PYTHONS 256
/* Of one process: one that makes up ever new functions is not followed for ever. */
#define NAMES_PYTHON_READS 20000
#define NAMES_PYTHON_READS_NS (60ULL * 1000000000)

struct names_python {
	uint64_t generation;
	struct proc_mem *mem; /* NULL: it is gone, or may not be read */
	uint64_t used_ns;
	uint64_t since_ns; /* of reads, which are counted minute by minute */
	uint32_t reads;
};

/* Zeroed is empty. */
struct names_pythons {
	struct names_python list[NAMES_MAX_PYTHONS];
	size_t len;
};

void names_pythons_release(struct names_pythons *pythons);
void names_pythons_forget(struct names_pythons *pythons, uint64_t generation);
/* -errno as in python_code_read(); -EBUSY: that were too many. */
int names_pythons_read(struct names_pythons *pythons, const struct cpu_process *process,
		       const struct cpu_python_frame *frame, uint64_t now_ns,
		       struct python_code *ret_code);
