/* src/cpu/unwind/ranges.h: allocates ranges of numbers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_range {
	uint32_t first;
	uint32_t n;
};

/* Empty if zeroed: nothing can be allocated. */
struct cpu_ranges {
	struct cpu_range *free; /* ascending, not adjacent */
	size_t len;
	size_t cap;
};

/* -ENOSPC. A range never crosses a multiple of boundary, unless that is 0. */
int cpu_ranges_take(struct cpu_ranges *ranges, uint32_t n, uint32_t boundary, uint32_t *ret_first);
/* Exactly these, if all are free; otherwise -ENOSPC. */
int cpu_ranges_take_at(struct cpu_ranges *ranges, uint32_t first, uint32_t n);
/* Also adds numbers never allocated before, which is how the pool is filled. -ENOMEM. */
int cpu_ranges_give(struct cpu_ranges *ranges, uint32_t first, uint32_t n);
void cpu_ranges_release(struct cpu_ranges *ranges);
