/*
 * src/cpu/symbols/jit.h: the perf maps of processes, within a limit of memory. For the files of
 * names only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cpu/symbols/perfmap.h"

#define NAMES_MAX_JITS 256
/* A process without a map may write one later. */
#define NAMES_JIT_RETRY_NS (10ULL * 1000000000)

struct names_jit {
	uint64_t generation;
	pid_t pid;
	struct cpu_perfmap *map; /* NULL: it has none */
	uint32_t epoch;		 /* another whenever names may have changed */
	uint64_t next_ns;	 /* when to look for a map, or for another one, again */
	uint64_t used_ns;
};

/* Zeroed is empty, but for max_bytes. */
struct names_jits {
	size_t max_bytes;
	struct names_jit list[NAMES_MAX_JITS];
	size_t len;
	uint32_t epoch; /* the last one given out */
};

void names_jits_release(struct names_jits *jits);
/* The process with its map as it is now. Lives until the next call. */
struct names_jit *names_jits_get(struct names_jits *jits, pid_t pid, uint64_t generation,
				 uint64_t now_ns);
void names_jits_forget(struct names_jits *jits, uint64_t generation);
