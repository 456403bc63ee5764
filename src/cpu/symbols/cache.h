/*
 * src/cpu/symbols/cache.h: what was looked up before, within a limit of memory.
 *
 * There are two generations. New answers and those that are asked for again go into the young one;
 * when it is full it becomes the old one, and what nobody asked for since is forgotten. For the
 * files of names only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "cpu/symbols/symbolizer.h"

enum names_kind { NAMES_FILE, NAMES_KERNEL, NAMES_JIT, NAMES_INTERP };

struct names_key {
	uint32_t kind;
	uint32_t id;	/* of the file; epoch of the kernel's or the process's names */
	uint64_t owner; /* generation of the file or the process; of frames mixed with their check
			 */
	uint64_t addr;	/* or the frame */
};

struct names_generation {
	struct map index; /* hash of the key to the first entry */
	struct arena entries;
	struct intern strings;
};

/* Zeroed is empty, but for max_bytes. */
struct names_cache {
	size_t max_bytes; /* of both generations */
	struct names_generation young, old;
};

void names_cache_release(struct names_cache *cache);
/* How many names were written to out (CPU_NAMES_MAX of them fit); 0 when the key is not there. */
size_t names_cache_get(struct names_cache *cache, const struct names_key *key,
		       struct cpu_name *out);
/* Copies names and writes the copies to out. -ENOMEM. */
int names_cache_put(struct names_cache *cache, const struct names_key *key,
		    const struct cpu_name *names, size_t n, struct cpu_name *out);
