/*
 * src/base/sum.h: saturating sums. A forged profile may contain any value; wrapping around would
 * turn a huge number into a plausible one.
 */
#pragma once

#include <stdint.h>

static inline int64_t sum_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static inline int64_t sum_mul(int64_t a, int64_t b)
{
	int64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
	return product;
}

static inline int64_t sum_abs(int64_t a)
{
	return a < 0 ? sum_mul(a, -1) : a;
}
