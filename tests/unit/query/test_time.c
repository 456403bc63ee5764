/* tests/unit/query/test_time.c: times as people and programs write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "query/query.h"

#define SECOND ((int64_t)1000000000)
/* 2026-11-15T12:00:00Z */
#define NOW (1794744000 * SECOND)

static void expect_time(const char *text, int64_t expected)
{
	struct err err = {};
	int64_t ns = -1;

	assert_int_equal(query_parse_time(text, NOW, &ns, &err), 0);
	assert_int_equal(ns, expected);
}

static void times_are_read_in_every_form(void **state)
{
	(void)state;
	expect_time("now", NOW);
	expect_time("-1h", NOW - 3600 * SECOND);
	expect_time("now-90s", NOW - 90 * SECOND);
	expect_time("-7d", NOW - 7 * 86400 * SECOND);
	expect_time("1794744000", NOW);
	expect_time("1794744000250", NOW + SECOND / 4);
	expect_time("0", 0);
	expect_time("2026-11-15T12:00:00Z", NOW);
	expect_time("2026-11-15T12:00:00.5Z", NOW + SECOND / 2);
	expect_time("2026-11-15T13:30:00+01:30", NOW);
	expect_time("2026-11-15T13:30:00 01:30", NOW);
	expect_time("2026-11-15T07:00:00-0500", NOW);
}

static void times_without_a_zone_are_local(void **state)
{
	(void)state;
	(void)setenv("TZ", "XYZ-2", 1); /* two hours east */
	tzset();
	expect_time("2026-11-15T14:00", NOW);
	expect_time("13:59:30", NOW - 30 * SECOND);
	/* To come today, so it was yesterday. */
	expect_time("14:30", NOW - 86400 * SECOND + 1800 * SECOND);
	expect_time("2026-11-15", NOW - 14 * 3600 * SECOND);
	(void)unsetenv("TZ");
	tzset();
}

static void what_is_no_time_is_refused_with_a_sentence(void **state)
{
	static const char *const texts[] = {"",
					    "yesterday",
					    "-",
					    "-1x",
					    "1h",
					    "12:60",
					    "24:00",
					    "12:0",
					    "99999999999999999999",
					    "-99999999d",
					    "2026-13-01",
					    "2026-1-1",
					    "1969-01-01",
					    "now+1",
					    "2026-11-15T12:00:00Zx",
					    "2026-11-15T12:00:00+25:00",
					    "nan",
					    "-inf",
					    "1e9",
					    "9999-01-01T00:00:00Z"};
	char longest[256];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct err err = {};
		int64_t ns = 42;

		if (query_parse_time(texts[i], NOW, &ns, &err) != -EINVAL)
			fail_msg("'%s' is taken for a time", texts[i]);
		assert_int_equal(ns, 42);
		assert_non_null(strstr(err.text, "is not a time"));
	}
	memset(longest, '1', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(query_parse_time(longest, NOW, &(int64_t){0}, &(struct err){.text = ""}),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_read_in_every_form),
		cmocka_unit_test(times_without_a_zone_are_local),
		cmocka_unit_test(what_is_no_time_is_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
