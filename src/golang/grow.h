/* src/golang/grow.h: arrays that grow by half: they are most of our memory, and filled once. */
#pragma once

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* array is the address of a pointer to items of unit bytes. -E2BIG past max, -ENOMEM. */
static inline int golang_grow(void *array, size_t *cap, size_t need, size_t unit, size_t max)
{
	void **items = array;
	size_t bigger = MAX(MAX(need, (size_t)256), *cap + *cap / 2);
	void *p;

	if (need <= *cap)
		return 0;
	if (need > max)
		return -E2BIG;
	bigger = MIN(bigger, max);
	p = reallocarray(*items, bigger, unit);
	if (!p)
		return -ENOMEM;
	*items = p;
	*cap = bigger;
	return 0;
}

/* Frees the capacity beyond len; on failure everything stays as it is. */
static inline void golang_shrink(void *array, size_t *cap, size_t len, size_t unit)
{
	void **items = array;
	void *p = len < *cap ? reallocarray(*items, MAX(len, 1), unit) : NULL;

	if (!p)
		return;
	*items = p;
	*cap = MAX(len, 1);
}
