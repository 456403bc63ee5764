/* tests/unit/cli/test_units.c: values look as `go tool pprof` prints them. */
#include "cli/render/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_label(int64_t value, const char *unit, const char *to, const char *expected)
{
	char label[UNITS_LABEL_LEN];

	assert_string_equal(units_label(label, value, unit, to), expected);
}

static void assert_percentage(int64_t value, int64_t total, const char *expected)
{
	char label[UNITS_LABEL_LEN];

	assert_string_equal(units_percentage(label, value, total), expected);
}

static void labels_pick_the_largest_unit_that_fits(void **state)
{
	(void)state;
	assert_label(0, "bytes", "auto", "0");
	assert_label(1023, "bytes", "auto", "1023B");
	assert_label(1024, "bytes", "auto", "1kB");
	assert_label(1536, "bytes", "auto", "1.50kB");
	assert_label(524288, "bytes", "auto", "512kB");
	assert_label((int64_t)3 << 40, "bytes", "auto", "3TB");
	assert_label(1500000, "nanoseconds", "auto", "1.50ms");
	assert_label(7200000000000, "nanoseconds", "auto", "2hrs");
}

static void labels_keep_the_sign(void **state)
{
	(void)state;
	assert_label(-1536, "bytes", "auto", "-1.50kB");
	assert_label(-3, "count", "auto", "-3");
	assert_label(INT64_MIN, "bytes", "PB", "-8192PB");
}

static void labels_convert_to_the_unit_that_is_asked_for(void **state)
{
	(void)state;
	assert_label(1536, "bytes", "MB", "0");
	assert_label(15360, "bytes", "MB", "0.01MB");
	assert_label(1 << 20, "byte", "kB", "1024kB");
	assert_label(5, "seconds", "ms", "5000ms");
}

static void labels_of_counts_have_no_unit(void **state)
{
	(void)state;
	assert_label(42, "count", "count", "42");
	assert_label(42, "count", "auto", "42");
	assert_label(42, "goroutines", "goroutines", "42goroutines");
}

static void labels_of_absurd_units_stay_within_bounds(void **state)
{
	char label[UNITS_LABEL_LEN];
	const char *unit = "a unit of a forged profile that is far longer than any label";

	(void)state;
	units_label(label, INT64_MAX, unit, unit);
	assert_int_equal(strlen(label), UNITS_LABEL_LEN - 1);
}

static void percentages_have_two_digits(void **state)
{
	(void)state;
	assert_percentage(0, 0, "    0%");
	assert_percentage(0, 100, "    0%");
	assert_percentage(1, 1000, "  0.1%");
	assert_percentage(1234, 10000, "12.34%");
	assert_percentage(5, 10000, " 0.05%");
	assert_percentage(100, 100, "  100%");
	assert_percentage(-50, 100, "50.00%");
	assert_percentage(250, 100, "250.00%");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_pick_the_largest_unit_that_fits),
		cmocka_unit_test(labels_keep_the_sign),
		cmocka_unit_test(labels_convert_to_the_unit_that_is_asked_for),
		cmocka_unit_test(labels_of_counts_have_no_unit),
		cmocka_unit_test(labels_of_absurd_units_stay_within_bounds),
		cmocka_unit_test(percentages_have_two_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
