/* src/elf/dwarf/array.h: arrays that grow to a maximum. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define ELF_DWARF_ARRAY_FIRST 16

/*
 * Makes room for one more item at n: 0, -E2BIG past max items, -ENOMEM. items is a pointer to the
 * array.
 */
static inline int elf_dwarf_array_reserve(void *items, size_t *cap, size_t n, size_t item_bytes,
					  size_t max)
{
	size_t bigger = *cap ? *cap * 2 : ELF_DWARF_ARRAY_FIRST;
	void **array = items;
	void *p;

	if (n < *cap)
		return 0;
	if (n >= max)
		return -E2BIG;
	p = reallocarray(*array, bigger, item_bytes);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = bigger;
	return 0;
}

/* Frees unused capacity. */
static inline void elf_dwarf_array_shrink(void *items, size_t *cap, size_t n, size_t item_bytes)
{
	void **array = items;
	void *p;

	if (n == 0 || n == *cap)
		return;
	p = reallocarray(*array, n, item_bytes);
	if (!p)
		return;
	*array = p;
	*cap = n;
}
