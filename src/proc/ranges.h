/* src/proc/ranges.h: binary search in sorted, disjoint address ranges. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The first members of every range struct. */
struct proc_range_ends {
	uint64_t start;
	uint64_t end;
};

/* The index of the first of n ranges of size bytes that ends after addr; n if none. */
static inline size_t proc_ranges_from(const void *ranges, size_t n, size_t size, uint64_t addr)
{
	const char *first = ranges;
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct proc_range_ends *r = (const void *)(first + mid * size);

		if (r->end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
