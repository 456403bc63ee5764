/* src/cpu/unwind/ranges.c: see ranges.h. First fit: ranges are few and of all sizes. */
#include "cpu/unwind/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int ranges_insert(struct cpu_ranges *r, size_t at, struct cpu_range range)
{
	if (!r->free || r->len == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 16;
		struct cpu_range *grown = realloc(r->free, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->free = grown;
		r->cap = cap;
	}
	memmove(&r->free[at + 1], &r->free[at], (r->len - at) * sizeof(*r->free));
	r->free[at] = range;
	r->len++;
	return 0;
}

static void ranges_erase(struct cpu_ranges *r, size_t at)
{
	r->len--;
	memmove(&r->free[at], &r->free[at + 1], (r->len - at) * sizeof(*r->free));
}

/* Cuts [first, first + n) out of the free range at `at`, which contains it. */
static int ranges_cut(struct cpu_ranges *r, size_t at, uint32_t first, uint32_t n)
{
	struct cpu_range *whole = &r->free[at];
	uint32_t before = first - whole->first, after = whole->n - before - n;

	if (before && after) {
		struct cpu_range rest = {.first = first + n, .n = after};

		if (ranges_insert(r, at + 1, rest) < 0)
			return -ENOMEM;
		r->free[at].n = before;
	} else if (before) {
		whole->n = before;
	} else if (after) {
		whole->first = first + n;
		whole->n = after;
	} else {
		ranges_erase(r, at);
	}
	return 0;
}

int cpu_ranges_take(struct cpu_ranges *r, uint32_t n, uint32_t boundary, uint32_t *ret_first)
{
	if (boundary && n > boundary)
		return -ENOSPC;
	for (size_t i = 0; i < r->len; i++) {
		uint32_t first = r->free[i].first, end = first + r->free[i].n;
		int code;

		if (boundary && first / boundary != (first + n - 1) / boundary)
			first = (first / boundary + 1) * boundary;
		if (first > end || end - first < n)
			continue;
		code = ranges_cut(r, i, first, n);
		if (code < 0)
			return code;
		*ret_first = first;
		return 0;
	}
	return -ENOSPC;
}

/* The number of free ranges starting at or before first. */
static size_t ranges_search(const struct cpu_ranges *r, uint32_t first)
{
	size_t lo = 0, hi = r->len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->free[mid].first <= first)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int cpu_ranges_take_at(struct cpu_ranges *r, uint32_t first, uint32_t n)
{
	size_t at = ranges_search(r, first);
	const struct cpu_range *found;

	if (!at)
		return -ENOSPC;
	found = &r->free[at - 1];
	if (first + n > found->first + found->n)
		return -ENOSPC;
	return ranges_cut(r, at - 1, first, n);
}

int cpu_ranges_give(struct cpu_ranges *r, uint32_t first, uint32_t n)
{
	size_t at = ranges_search(r, first);
	struct cpu_range *before = at ? &r->free[at - 1] : NULL;
	struct cpu_range *after = at < r->len ? &r->free[at] : NULL;
	bool joins_before = before && before->first + before->n == first;
	bool joins_after = after && first + n == after->first;

	if (joins_before) {
		before->n += n;
		if (joins_after) {
			before->n += after->n;
			ranges_erase(r, at);
		}
		return 0;
	}
	if (joins_after) {
		after->first = first;
		after->n += n;
		return 0;
	}
	return ranges_insert(r, at, (struct cpu_range){.first = first, .n = n});
}

void cpu_ranges_release(struct cpu_ranges *r)
{
	free(r->free);
	*r = (struct cpu_ranges){0};
}
