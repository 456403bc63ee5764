/* tests/unit/base/test_json.c: numbers are written without printf; what is read back is the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

static void expect_double(double value, const char *text)
{
	_cleanup_(buf_release) struct buf out = {0};
	struct json j = json_to(&out);

	json_double(&j, value);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_cstr(&out), text);
}

static void whole_numbers_and_64ths_have_their_exact_digits(void **state)
{
	(void)state;
	expect_double(0, "0");
	expect_double(-0.0, "-0");
	expect_double(1, "1");
	expect_double(-1, "-1");
	expect_double(0.5, "0.5");
	expect_double(-2.25, "-2.25");
	expect_double(1.0 / 64, "0.015625");
	expect_double(63.0 / 64, "0.984375");
	expect_double(10 + 1.0 / 16, "10.0625");
	expect_double(140737488355327 + 63.0 / 64, "140737488355327.984375");
	expect_double(-140737488355327, "-140737488355327");
	expect_double(1e300, "1.0000000000000001e+300");
	expect_double(0.1, "0.10000000000000001");
	expect_double(1.0 / 128, "0.0078125");
	expect_double(NAN, "null");
	expect_double(-INFINITY, "null");
}

static void every_number_is_read_back_as_it_was(void **state)
{
	(void)state;
	srand(5);
	for (int i = 0; i < 200000; i++) {
		uint64_t n = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 15 ^ (uint64_t)rand();
		double parts = (double)((int64_t)n >> (i % 60)) / (double)(1U << (i % 9)), bits;
		double values[2];
		_cleanup_(buf_release) struct buf out = {0};
		struct json j = json_to(&out);
		char *at;

		memcpy(&bits, &n, sizeof(bits));
		values[0] = parts;
		values[1] = isfinite(bits) ? bits : 1;
		json_array_begin(&j);
		json_uint(&j, n);
		json_int(&j, (int64_t)n);
		json_double(&j, values[0]);
		json_double(&j, values[1]);
		json_array_end(&j);
		assert_int_equal(json_finish(&j), 0);
		assert_non_null(buf_cstr(&out));
		at = (char *)out.data + 1;
		assert_true(strtoull(at, &at, 10) == n && *at++ == ',');
		assert_true(strtoll(at, &at, 10) == (int64_t)n && *at++ == ',');
		assert_true(strtod(at, &at) == values[0] && *at++ == ',');
		assert_true(strtod(at, &at) == values[1]);
		assert_string_equal(at, "]");
	}
}

static void the_ends_of_the_range_fit(void **state)
{
	_cleanup_(buf_release) struct buf out = {0};
	struct json j = json_to(&out);

	(void)state;
	json_object_begin(&j);
	json_key(&j, "a");
	json_int(&j, INT64_MIN);
	json_key(&j, "b");
	json_uint(&j, UINT64_MAX);
	json_key(&j, "c");
	json_int(&j, 0);
	json_object_end(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_cstr(&out),
			    "{\"a\":-9223372036854775808,\"b\":18446744073709551615,\"c\":0}");
}

static void a_full_buffer_is_told(void **state)
{
	_cleanup_(buf_release) struct buf out = buf_with_max(64);
	struct json j = json_to(&out);

	(void)state;
	json_array_begin(&j);
	for (int i = 0; i < 100; i++)
		json_uint(&j, (uint64_t)i);
	json_array_end(&j);
	assert_int_equal(json_finish(&j), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_and_64ths_have_their_exact_digits),
		cmocka_unit_test(every_number_is_read_back_as_it_was),
		cmocka_unit_test(the_ends_of_the_range_fit),
		cmocka_unit_test(a_full_buffer_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
