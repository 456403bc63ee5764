/*
 * src/cli/units.h: values as `go tool pprof` prints them (its package internal/measurement), so
 * that the two tools' tables can be compared line by line.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UNITS_LABEL_LEN 48

/* The unit in which pprof would print this value on its own: "MB", "ms"; "" for plain counts. */
const char *units_natural(int64_t value, const char *unit);
/* "1.50MB"; to is a unit, or "auto" for the natural one. Returns dst. */
const char *units_label(char dst[static UNITS_LABEL_LEN], int64_t value, const char *unit,
			const char *to);
/* " 12.34%", with at least two digits, as a share without sign. Returns dst. */
const char *units_percentage(char dst[static UNITS_LABEL_LEN], int64_t value, int64_t total);
