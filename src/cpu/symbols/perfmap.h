/*
 * src/cpu/symbols/perfmap.h: names of code generated at run time, from the text that runtimes write
 * to /tmp/perf-PID.map (Node, Java with an agent, CPython with -X perf, .NET, LuaJIT, ...):
 *
 *   7f3c5a001000 80 LazyCompile:*main /srv/app.js:12
 *
 * The target controls the file. It is looked up in the target's root directory, by the pid in the
 * target's namespace, and read only if it is a regular file owned by its user or root, up to a
 * limit; if its owner may not read it, it is still being written. Memory holds the address ranges
 * of functions and the offsets of their lines; names are read on demand. Runtimes reuse memory, so
 * if lines overlap, the later one wins.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

struct cpu_perfmap; /* opaque */

/* Minimum time between two checks of the file, and how much more of it to read per second. */
#define CPU_PERFMAP_RETRY_NS (1ULL * 1000000000)
#define CPU_PERFMAP_BYTES_PER_SEC ((uint64_t)4 << 20)
/* Lines beyond this are not read. */
#define CPU_PERFMAP_MAX_BYTES ((uint64_t)64 << 20)
#define CPU_PERFMAP_MAX_FUNCTIONS ((size_t)256 << 10)

/* -ENOENT: none. -EPERM: we must not trust it. -EAGAIN: not complete yet, or not in time. */
int cpu_perfmap_open(pid_t pid, struct cpu_perfmap **ret_map, struct err *err);
/* For a regular file; takes fd, also on failure. */
int cpu_perfmap_open_take(int fd, struct cpu_perfmap **ret_map, struct err *err);
void cpu_perfmap_close(struct cpu_perfmap *map); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_perfmap, cpu_perfmap_close)

/*
 * Reads what was appended, or everything if the file was rewritten. Does nothing if called too
 * soon. True if names may have changed.
 */
bool cpu_perfmap_refresh(struct cpu_perfmap *map, uint64_t now_ns);
/*
 * The file was unlinked, so another one may have replaced it. What was read stays valid. False if
 * called too soon.
 */
bool cpu_perfmap_is_replaced(const struct cpu_perfmap *map, uint64_t now_ns);
/* -ENOENT: no known function. */
int cpu_perfmap_lookup(struct cpu_perfmap *map, uint64_t addr, char *dst, size_t cap);
size_t cpu_perfmap_memory(const struct cpu_perfmap *map);
