/*
 * src/cpu/symbols/kallsyms.h: names of kernel functions, including modules and BPF programs.
 *
 * The kernel generates /proc/kallsyms for every reader (a hundred thousand lines, tens of
 * milliseconds), and cannot look up a single address. So it is read once, for the first lookup, and
 * kept small: four bytes per function, and names in compressed blocks, of which a lookup opens one;
 * just over a megabyte in all. It is read again if an address is in none of its functions, or after
 * a while for an address in a module, because modules come and go.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct cpu_kallsyms; /* opaque */

#define CPU_KALLSYMS_PATH "/proc/kallsyms"
/* Minimum time between two reads caused by unknown addresses. */
#define CPU_KALLSYMS_RETRY_NS (60ULL * 1000000000)
/* If the last read is older than this, read again for a new address in a module. */
#define CPU_KALLSYMS_AGE_NS (600ULL * 1000000000)

int cpu_kallsyms_new(const char *path, struct cpu_kallsyms **ret_kallsyms, struct err *err);
void cpu_kallsyms_free(struct cpu_kallsyms *kallsyms); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_kallsyms, cpu_kallsyms_free)

/*
 * Writes "function" or "function [module]" to dst. -ENOENT: no known function. now_ns is the
 * monotonic clock.
 */
int cpu_kallsyms_lookup(struct cpu_kallsyms *kallsyms, uint64_t addr, uint64_t now_ns, char *dst,
			size_t cap);
/* Grows with each read: earlier answers may have changed. */
uint32_t cpu_kallsyms_epoch(const struct cpu_kallsyms *kallsyms);
/* Whether there are any names; otherwise an error with its remedy. Reads no more than necessary. */
int cpu_kallsyms_check(const char *path, struct err *err);
