/*
 * src/cpu/symbols/kallsyms.h: names of kernel functions, those of modules and BPF programs
 * included.
 *
 * The kernel writes /proc/kallsyms anew for every reader (a hundred thousand lines, tens of
 * milliseconds), and cannot be asked for one address. So it is read once, when the first address
 * is asked for, and kept small: four bytes for each function, names in compressed blocks of which
 * one is opened for a lookup; somewhat over a megabyte in all. It is read again when an address is
 * in none of its functions, or after a while for an address of a module, for modules come and go.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct cpu_kallsyms; /* opaque */

#define CPU_KALLSYMS_PATH "/proc/kallsyms"
/* The least time between two readings that an unknown address can cause. */
#define CPU_KALLSYMS_RETRY_NS (60ULL * 1000000000)
/* A reading this old is not trusted with a module's address that was not asked for before. */
#define CPU_KALLSYMS_AGE_NS (600ULL * 1000000000)

int cpu_kallsyms_new(const char *path, struct cpu_kallsyms **ret_kallsyms, struct err *err);
void cpu_kallsyms_free(struct cpu_kallsyms *kallsyms); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_kallsyms, cpu_kallsyms_free)

/*
 * Writes "function" or "function [module]" to dst. -ENOENT: no function is known there. now_ns is
 * the monotonic clock.
 */
int cpu_kallsyms_lookup(struct cpu_kallsyms *kallsyms, uint64_t addr, uint64_t now_ns, char *dst,
			size_t cap);
/* Grows with each reading: what was looked up before may have changed. */
uint32_t cpu_kallsyms_epoch(const struct cpu_kallsyms *kallsyms);
/* Whether there are any names; else an error with its remedy. Reads only as much as that takes. */
int cpu_kallsyms_check(const char *path, struct err *err);
