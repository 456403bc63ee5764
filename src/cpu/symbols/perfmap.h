/*
 * src/cpu/symbols/perfmap.h: names of code that a runtime made up at run time, from the text that
 * it leaves in /tmp/perf-PID.map (Node, Java with an agent, CPython with -X perf, .NET, LuaJIT,
 * ...):
 *
 *   7f3c5a001000 80 LazyCompile:*main /srv/app.js:12
 *
 * The file is the target's: it is found in its root directory and under its own number for itself,
 * and only a regular file of its own user's or root's is read, up to a limit; one that its owner
 * may not read is still being written. In memory is where the functions are and where their lines
 * begin; names are read when asked for. Runtimes use memory again, so of lines that overlap the
 * later one holds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

struct cpu_perfmap; /* opaque */

/* The least time between two looks at the file, and how much more of it is then read per second. */
#define CPU_PERFMAP_RETRY_NS (1ULL * 1000000000)
#define CPU_PERFMAP_BYTES_PER_SEC ((uint64_t)4 << 20)
/* Lines behind that are not read. */
#define CPU_PERFMAP_MAX_BYTES ((uint64_t)64 << 20)
#define CPU_PERFMAP_MAX_FUNCTIONS ((size_t)256 << 10)

/* -ENOENT: the process has none. -EPERM: none that we read. -EAGAIN: it is being written. */
int cpu_perfmap_open(pid_t pid, struct cpu_perfmap **ret_map, struct err *err);
/* Of a regular file; takes fd whatever happens. */
int cpu_perfmap_open_take(int fd, struct cpu_perfmap **ret_map, struct err *err);
void cpu_perfmap_close(struct cpu_perfmap *map); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_perfmap, cpu_perfmap_close)

/*
 * Reads what the file has gained; all of it when it was written anew. Does nothing when it is not
 * yet time for that. True when names may have changed.
 */
bool cpu_perfmap_refresh(struct cpu_perfmap *map, uint64_t now_ns);
/*
 * The file has no name any more: another may have taken its place. What was read of it holds. False
 * while it is not yet time for another look.
 */
bool cpu_perfmap_is_replaced(const struct cpu_perfmap *map, uint64_t now_ns);
/* -ENOENT: no function is known there. */
int cpu_perfmap_lookup(struct cpu_perfmap *map, uint64_t addr, char *dst, size_t cap);
size_t cpu_perfmap_memory(const struct cpu_perfmap *map);
