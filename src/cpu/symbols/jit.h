/*
 * src/cpu/symbols/jit.h: the perf maps of processes, within a memory limit. Private to the
 * symbolizer.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cpu/symbols/perfmap.h"

#define CPU_SYMBOLS_MAX_JITS 256
/* A process without a map may write one later. */
#define CPU_SYMBOLS_JIT_RETRY_NS (10ULL * 1000000000)
/* One that is not complete, or did not open in time, is there soon. */
#define CPU_SYMBOLS_JIT_SOON_NS (1ULL * 1000000000)

struct cpu_symbols_jit {
	uint64_t generation;
	pid_t pid;
	struct cpu_perfmap *map; /* NULL: it has none */
	uint32_t epoch;		 /* changes whenever names may have changed */
	uint64_t next_ns;	 /* when to look for a map, or a new one, again */
	uint64_t used_ns;
};

/* Empty if zeroed, except for max_bytes. */
struct cpu_symbols_jits {
	size_t max_bytes;
	struct cpu_symbols_jit list[CPU_SYMBOLS_MAX_JITS];
	size_t len;
	uint32_t epoch; /* the last one assigned */
};

void cpu_symbols_jits_release(struct cpu_symbols_jits *jits);
/* The process with its current map. Valid until the next call. */
struct cpu_symbols_jit *cpu_symbols_jits_get(struct cpu_symbols_jits *jits, pid_t pid,
					     uint64_t generation, uint64_t now_ns);
void cpu_symbols_jits_forget(struct cpu_symbols_jits *jits, uint64_t generation);
