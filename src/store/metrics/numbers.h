/*
 * src/store/metrics/numbers.h: the values of one series in one hour, in as few bits as they need.
 *
 *   byte  how: all the same, whole numbers, any, or noise
 *
 *   same   number (below)
 *   whole  byte    decimal digits: the values are whole numbers / 10^digits
 *          byte    code: bits 0-1 how numbers are written, bit 2 differences
 *          byte    the code's parameter
 *          varint  zigzag of the minimum, or of the first value if differences follow
 *          varint  common divisor of all differences
 *          bits    (value - minimum) / divisor; or, from the second value on, the zigzag of
 *                  (value - previous) / divisor
 *   any    8 bytes the first value
 *          bits    each value XOR the previous one, as in Facebook's Gorilla
 *   noise  8 bytes the first value
 *          byte    width, byte: zeros below
 *          bits    each value XOR the first, without the zeros common to all above and below
 *
 * Codes: fixed width; Rice, for mostly small numbers; Rice with a leading bit for nonzero, for
 * numbers that are mostly 0 and otherwise large, such as what changes only at a garbage collection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/view.h"

/* n is at least 1; values must be finite. 0, -ENOMEM or -E2BIG. */
int store_numbers_encode(const double *values, size_t n, struct buf *out);
/* False if the bytes are not n finite values. */
bool store_numbers_decode(struct view bytes, double *values, size_t n);

/* One number; whole numbers take less space. */
int store_numbers_put(struct buf *out, double value);
bool store_numbers_get(struct view bytes, size_t *at, double *ret_value);
