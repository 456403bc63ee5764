/* src/cpu/symbols/kallsyms_parse.h: parses the functions of /proc/kallsyms, sorted by address. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The kernel's own limit is 512, without the module. */
#define CPU_KSYMS_MAX_NAME 1024
#define CPU_KSYMS_MAX ((size_t)1 << 20)

struct cpu_ksym {
	uint32_t start; /* from base */
	uint32_t name;	/* in names; "function" or "function [module]" */
	uint8_t rank;	/* of several names for an address, the highest stays */
};

/* Empty if zeroed; may be released. */
struct cpu_ksyms {
	uint64_t base;
	uint64_t core_end; /* only modules are above it */
	struct cpu_ksym *list;
	size_t len;
	size_t cap;
	struct buf names;
	size_t n_hidden; /* functions with the address 0 */
};

/* Skips invalid lines, and functions past CPU_KSYMS_MAX. -errno of reading. */
int cpu_ksyms_read(int fd, struct cpu_ksyms *ret_ksyms);
/* Reads just enough to know whether there are any. */
int cpu_ksyms_read_some(int fd, struct cpu_ksyms *ret_ksyms);
void cpu_ksyms_release(struct cpu_ksyms *ksyms);
