/*
 * src/cli/render/units.c: see units.h. The table and the rules follow
 * github.com/google/pprof/internal/measurement/measurement.go.
 */
#include "cli/render/units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum units_family { UNITS_MEMORY, UNITS_TIME, UNITS_N_FAMILIES };

struct units_unit {
	enum units_family family;
	const char *name;
	const char *aliases[4];
	double factor;
};

static const struct units_unit units_table[] = {
	{UNITS_MEMORY, "B", {"b", "byte"}, 1},
	{UNITS_MEMORY, "kB", {"kb", "kbyte", "kilobyte"}, 1024.0},
	{UNITS_MEMORY, "MB", {"mb", "mbyte", "megabyte"}, 1024.0 * 1024},
	{UNITS_MEMORY, "GB", {"gb", "gbyte", "gigabyte"}, 1024.0 * 1024 * 1024},
	{UNITS_MEMORY, "TB", {"tb", "tbyte", "terabyte"}, 1024.0 * 1024 * 1024 * 1024},
	{UNITS_MEMORY, "PB", {"pb", "pbyte", "petabyte"}, 1024.0 * 1024 * 1024 * 1024 * 1024},
	{UNITS_TIME, "ns", {"ns", "nanosecond"}, 1},
	{UNITS_TIME, "us", {"\316\274s", "us", "microsecond"}, 1e3},
	{UNITS_TIME, "ms", {"ms", "millisecond"}, 1e6},
	{UNITS_TIME, "s", {"s", "sec", "second"}, 1e9},
	{UNITS_TIME, "hrs", {"hour", "hr"}, 3600e9},
};

/* The fallback of a family for values too small for all its units. */
static const size_t units_default[UNITS_N_FAMILIES] = {[UNITS_MEMORY] = 0, [UNITS_TIME] = 9};

static const struct units_unit *units_find(const char *name)
{
	char word[16];
	size_t len = strlen(name);

	if (len >= sizeof(word))
		return NULL;
	for (size_t i = 0; i <= len; i++)
		word[i] = (char)tolower((unsigned char)name[i]);
	if (len > 2 && word[len - 1] == 's')
		word[len - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(units_table); i++)
		for (size_t a = 0; a < ARRAY_SIZE(units_table[i].aliases); a++)
			if (units_table[i].aliases[a] &&
			    strcmp(units_table[i].aliases[a], word) == 0)
				return &units_table[i];
	return NULL;
}

/* The largest unit of the family that is not larger than the value. */
static const struct units_unit *units_fit(enum units_family family, double base_value)
{
	const struct units_unit *best = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(units_table); i++) {
		const struct units_unit *u = &units_table[i];

		if (u->family == family && base_value / u->factor >= 1.0 &&
		    (!best || u->factor >= best->factor))
			best = u;
	}
	return best ? best : &units_table[units_default[family]];
}

/* The value in the unit `to`; *ret_unit is printed after it. */
static double units_scale(int64_t value, const char *unit, const char *to, const char **ret_unit)
{
	const struct units_unit *from = units_find(unit);
	const struct units_unit *target;
	double base;

	if (!from) {
		static const char *const silent[] = {"count", "sample", "unit", "minimum", "auto"};

		*ret_unit = to;
		for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
			if (strcmp(to, silent[i]) == 0)
				*ret_unit = "";
		return (double)value;
	}
	base = (double)value * from->factor;
	target = units_find(to);
	if (strcmp(to, "auto") == 0)
		target = units_fit(from->family, fabs(base));
	else if (!target || target->family != from->family)
		target = &units_table[units_default[from->family]];
	*ret_unit = target->name;
	return base / target->factor;
}

const char *units_natural(int64_t value, const char *unit)
{
	const char *natural;

	(void)units_scale(value, unit, "auto", &natural);
	return natural;
}

const char *units_label(char dst[static UNITS_LABEL_LEN], int64_t value, const char *unit,
			const char *to)
{
	const char *shown_unit;
	double scaled = units_scale(value, unit, to, &shown_unit);
	size_t len;

	(void)snprintf(dst, UNITS_LABEL_LEN, "%.2f", scaled);
	len = strlen(dst);
	if (len > 3 && strcmp(dst + len - 3, ".00") == 0)
		dst[len - 3] = '\0';
	if (strcmp(dst, "-0") == 0)
		(void)snprintf(dst, UNITS_LABEL_LEN, "0");
	if (strcmp(dst, "0") == 0)
		shown_unit = "";
	len = strlen(dst);
	(void)snprintf(dst + len, UNITS_LABEL_LEN - len, "%s", shown_unit);
	return dst;
}

const char *units_percentage(char dst[static UNITS_LABEL_LEN], int64_t value, int64_t total)
{
	double ratio = total ? fabs((double)value / (double)total) * 100 : 0;

	if (ratio >= 99.95 && ratio <= 100.05)
		(void)snprintf(dst, UNITS_LABEL_LEN, "  100%%");
	else
		(void)snprintf(dst, UNITS_LABEL_LEN, ratio >= 1.0 ? "%5.2f%%" : "%5.2g%%", ratio);
	return dst;
}
