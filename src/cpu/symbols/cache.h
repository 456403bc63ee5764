/*
 * src/cpu/symbols/cache.h: earlier lookups, within a memory limit.
 *
 * There are two generations. New answers, and those requested again, go into the young one; when it
 * is full it replaces the old one, and answers not requested since are dropped. Private to the
 * symbolizer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "cpu/symbols/symbolizer.h"

enum cpu_symbols_kind { CPU_SYMBOLS_FILE, CPU_SYMBOLS_KERNEL, CPU_SYMBOLS_JIT, CPU_SYMBOLS_INTERP };

struct cpu_symbols_key {
	uint32_t kind;
	uint32_t id;	/* of the file; epoch of the kernel's or the process's names */
	uint64_t owner; /* generation of the file or the process; for frames mixed with their check
			 */
	uint64_t addr;	/* or the frame */
};

struct cpu_symbols_generation {
	struct map index; /* hash of the key to the first entry */
	struct arena entries;
	struct intern strings;
};

/* Empty if zeroed, except for max_bytes. */
struct cpu_symbols_cache {
	size_t max_bytes; /* of both generations */
	struct cpu_symbols_generation young, old;
};

void cpu_symbols_cache_release(struct cpu_symbols_cache *cache);
/* The number of names written to out (room for CPU_SYMBOLIZER_MAX); 0 if the key is not cached. */
size_t cpu_symbols_cache_get(struct cpu_symbols_cache *cache, const struct cpu_symbols_key *key,
			     struct cpu_name *out);
/* Copies names and writes the copies to out. -ENOMEM. */
int cpu_symbols_cache_put(struct cpu_symbols_cache *cache, const struct cpu_symbols_key *key,
			  const struct cpu_name *names, size_t n, struct cpu_name *out);
