/* src/base/clock.c: see clock.h. */
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_unix_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t clock_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

uint64_t clock_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void clock_sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / NS_PER_SEC),
			      .tv_nsec = (long)(ns % NS_PER_SEC)};

	(void)nanosleep(&ts, NULL);
}

int clock_parse_duration(const char *s, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {
		{"", NS_PER_SEC},
		{"ns", 1},
		{"us", 1000},
		{"ms", NS_PER_MS},
		{"s", NS_PER_SEC},
		{"m", 60 * NS_PER_SEC},
		{"h", 3600 * NS_PER_SEC},
		{"d", 86400 * NS_PER_SEC},
	};
	char *end;
	double n;

	/* strtod would also accept "inf", "nan", signs, blanks, exponents and hexadecimal. */
	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	n = strtod(s, &end);
	if (end != s + strspn(s, "0123456789."))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		if (!isfinite(n) || n * (double)units[i].ns > 1e18)
			return -EINVAL;
		*ret_ns = (uint64_t)(n * (double)units[i].ns);
		return 0;
	}
	return -EINVAL;
}
