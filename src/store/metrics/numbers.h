/*
 * src/store/metrics/numbers.h: the values of one series in one hour, in as few bits as they need.
 *
 *   byte  how: all the same, whole numbers, any, or noise
 *
 *   same   number (below)
 *   whole  byte    decimal digits: the values are whole numbers / 10^digits
 *          byte    code: bits 0-1 how numbers are written, bit 2 differences
 *          byte    the code's parameter
 *          varint  zigzag of the least value, or of the first where differences follow
 *          varint  divisor, which all differences have in common
 *          bits    (value - least) / divisor; or, from the second value on, the zigzag of
 *                  (value - the one before) / divisor
 *   any    8 bytes the first value
 *          bits    each value XOR the one before, as in Facebook's Gorilla
 *   noise  8 bytes the first value
 *          byte    width, byte: zeros below
 *          bits    each value XOR the first, without the zeros that all have above and below
 *
 * Codes: a fixed width; Rice's, for numbers that are mostly small; the same with a bit before that
 * says whether there is one, for those that are mostly 0 and else large, as what changes at a
 * garbage collection only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/view.h"

/* n is at least 1, the values are finite. 0, -ENOMEM or -E2BIG. */
int numbers_encode(const double *values, size_t n, struct buf *out);
/* False when the bytes are not such values, or not finite. */
bool numbers_decode(struct view bytes, double *values, size_t n);

/* One number: small for whole ones. */
int numbers_put(struct buf *out, double value);
bool numbers_get(struct view bytes, size_t *at, double *ret_value);
