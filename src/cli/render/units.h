/*
 * src/cli/render/units.h: values as printed by `go tool pprof` (its package internal/measurement),
 * so tables of both tools can be compared line by line.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UNITS_LABEL_LEN 48

/* The unit that pprof would choose for this value: "MB", "ms"; "" for plain counts. */
const char *units_natural(int64_t value, const char *unit);
/* "1.50MB"; to is a unit, or "auto". Returns dst. */
const char *units_label(char dst[static UNITS_LABEL_LEN], int64_t value, const char *unit,
			const char *to);
/* " 12.34%": an unsigned share with at least two digits. Returns dst. */
const char *units_percentage(char dst[static UNITS_LABEL_LEN], int64_t value, int64_t total);
