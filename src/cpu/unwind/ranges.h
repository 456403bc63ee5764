/* src/cpu/unwind/ranges.h: hands out runs of numbers, and takes them back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_range {
	uint32_t first;
	uint32_t n;
};

/* A zeroed one has nothing to give. */
struct cpu_ranges {
	struct cpu_range *free; /* ascending, with gaps between them */
	size_t len;
	size_t cap;
};

/* -ENOSPC. A run never crosses a multiple of boundary, where that is not 0. */
int cpu_ranges_take(struct cpu_ranges *ranges, uint32_t n, uint32_t boundary, uint32_t *ret_first);
/* Exactly these, if all of them are free; else -ENOSPC. */
int cpu_ranges_take_at(struct cpu_ranges *ranges, uint32_t first, uint32_t n);
/* Also for numbers that were never handed out: that is how there come to be any. -ENOMEM. */
int cpu_ranges_give(struct cpu_ranges *ranges, uint32_t first, uint32_t n);
void cpu_ranges_release(struct cpu_ranges *ranges);
