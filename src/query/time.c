/* src/query/time.c: points in time as people and programs write them. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "query/query.h"

#define MAX_TEXT 64
#define MAX_SECONDS 9000000000LL /* in the year 2255: nanoseconds still fit */
/* Numbers from here on are milliseconds; as seconds they would be in the year 5138. */
#define FIRST_MS 100000000000LL
#define DAY_SECONDS 86400

static int time_wrong(const char *text, struct err *err)
{
	return err_set(err, -EINVAL,
		       "'%.40s' is not a time; use now, -1h, 12:03, 2026-11-15T12:03:00Z, or "
		       "milliseconds since 1970",
		       text);
}

static int time_before(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	uint64_t ns;

	if (clock_parse_duration(text, &ns) < 0 || ns > (uint64_t)now_ns)
		return -EINVAL;
	*ret_ns = now_ns - (int64_t)ns;
	return 0;
}

static int time_number(const char *text, int64_t *ret_ns)
{
	char *end;
	long long n;

	if (strlen(text) > 15 || text[strspn(text, "0123456789")] != '\0')
		return -EINVAL;
	n = strtoll(text, &end, 10);
	if (n >= FIRST_MS ? n > MAX_SECONDS * 1000 : n > MAX_SECONDS)
		return -EINVAL;
	*ret_ns = n >= FIRST_MS ? n * (int64_t)NS_PER_MS : n * (int64_t)NS_PER_SEC;
	return 0;
}

/* Parses exactly n digits and moves past them; -1 otherwise. */
static int take_digits(const char **text, int n)
{
	int value = 0;

	for (int i = 0; i < n; i++, (*text)++) {
		if (!isdigit((unsigned char)**text))
			return -1;
		value = value * 10 + (**text - '0');
	}
	return value;
}

static bool take(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

/* "12:03", with or without ":05" and ".250". */
static int take_clock(const char **text, struct tm *tm, int64_t *ret_ns)
{
	int64_t digit = (int64_t)NS_PER_SEC / 10;

	tm->tm_hour = take_digits(text, 2);
	if (!take(text, ':'))
		return -EINVAL;
	tm->tm_min = take_digits(text, 2);
	if (take(text, ':'))
		tm->tm_sec = take_digits(text, 2);
	if (tm->tm_hour < 0 || tm->tm_hour > 23 || tm->tm_min < 0 || tm->tm_min > 59 ||
	    tm->tm_sec < 0 || tm->tm_sec > 60)
		return -EINVAL;
	*ret_ns = 0;
	if (take(text, '.'))
		for (; isdigit((unsigned char)**text); (*text)++, digit /= 10)
			*ret_ns += (**text - '0') * digit;
	return 0;
}

/* "Z", "+01:00", "-0500"; ret_local when there is none. */
static int take_offset(const char **text, bool *ret_local, int *ret_seconds)
{
	int sign = **text == '-' ? -1 : 1, hours, minutes;

	*ret_local = **text == '\0';
	*ret_seconds = 0;
	if (*ret_local || take(text, 'Z') || take(text, 'z'))
		return **text == '\0' ? 0 : -EINVAL;
	/* An unescaped plus sign in a URL arrives as a blank. */
	if (!take(text, '+') && !take(text, '-') && !take(text, ' '))
		return -EINVAL;
	hours = take_digits(text, 2);
	(void)take(text, ':');
	minutes = take_digits(text, 2);
	if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || **text != '\0')
		return -EINVAL;
	*ret_seconds = sign * (hours * 3600 + minutes * 60);
	return 0;
}

static int time_date(const char *text, int64_t *ret_ns)
{
	struct tm tm = {.tm_isdst = -1};
	int64_t fraction = 0;
	int offset = 0, year;
	bool local = true;
	time_t t;

	year = take_digits(&text, 4);
	if (!take(&text, '-'))
		return -EINVAL;
	tm.tm_mon = take_digits(&text, 2) - 1;
	if (!take(&text, '-'))
		return -EINVAL;
	tm.tm_mday = take_digits(&text, 2);
	if (year < 1970 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 || tm.tm_mday > 31)
		return -EINVAL;
	tm.tm_year = year - 1900;
	if (*text != '\0') {
		if (!take(&text, 'T') && !take(&text, 't') && !take(&text, ' '))
			return -EINVAL;
		if (take_clock(&text, &tm, &fraction) < 0 ||
		    take_offset(&text, &local, &offset) < 0)
			return -EINVAL;
	}
	t = local ? mktime(&tm) : timegm(&tm) - offset;
	if (t < 0 || t > MAX_SECONDS)
		return -EINVAL;
	*ret_ns = (int64_t)t * (int64_t)NS_PER_SEC + fraction;
	return 0;
}

static int time_today(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	time_t now = (time_t)(now_ns / (int64_t)NS_PER_SEC), t;
	struct tm tm, day;
	int64_t fraction;

	if (!localtime_r(&now, &day))
		return -EINVAL;
	tm = (struct tm){.tm_year = day.tm_year, .tm_mon = day.tm_mon, .tm_mday = day.tm_mday};
	tm.tm_isdst = -1;
	if (take_clock(&text, &tm, &fraction) < 0 || *text != '\0')
		return -EINVAL;
	t = mktime(&tm);
	if (t > now)
		t -= DAY_SECONDS;
	if (t < 0)
		return -EINVAL;
	*ret_ns = (int64_t)t * (int64_t)NS_PER_SEC + fraction;
	return 0;
}

int query_parse_time(const char *text, int64_t now_ns, int64_t *ret_ns, struct err *err)
{
	int64_t ns = 0;
	int r;

	if (strnlen(text, MAX_TEXT) == MAX_TEXT)
		return time_wrong(text, err);
	if (strcmp(text, "now") == 0) {
		ns = now_ns;
		r = 0;
	} else if (strncmp(text, "now-", 4) == 0) {
		r = time_before(text + 4, now_ns, &ns);
	} else if (text[0] == '-') {
		r = time_before(text + 1, now_ns, &ns);
	} else if (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0') {
		r = time_number(text, &ns);
	} else if (strlen(text) >= 5 && text[2] == ':') {
		r = time_today(text, now_ns, &ns);
	} else {
		r = time_date(text, &ns);
	}
	if (r < 0)
		return time_wrong(text, err);
	*ret_ns = ns;
	return 0;
}
