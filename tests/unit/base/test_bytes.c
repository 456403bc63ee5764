/* tests/unit/base/test_bytes.c: views and buffers, the gates for foreign bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"

static void view_accessors_refuse_what_lies_past_the_end(void **state)
{
	const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct view v = view_of(bytes, sizeof(bytes)), sub = {0};
	uint64_t u64 = 42;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;

	(void)state;
	assert_true(view_u64(v, 1, &u64));
	assert_int_equal(u64, 0x0908070605040302);
	u64 = 42;
	assert_false(view_u64(v, 2, &u64));
	assert_int_equal(u64, 42);
	assert_true(view_u32(v, 5, &u32));
	assert_int_equal(u32, 0x09080706);
	assert_false(view_u32(v, 6, &u32));
	assert_true(view_u16(v, 7, &u16));
	assert_false(view_u16(v, 8, &u16));
	assert_true(view_u8(v, 8, &u8));
	assert_false(view_u8(v, 9, &u8));
	assert_true(view_sub(v, 9, 0, &sub));
	assert_int_equal(sub.len, 0);
	assert_false(view_sub(v, 10, 0, &sub));
}

static void view_gate_does_not_overflow(void **state)
{
	struct view v = view_of("12345678", 8), sub;
	uint64_t u64;

	(void)state;
	assert_false(view_has(v, UINT64_MAX, 1));
	assert_false(view_has(v, 1, UINT64_MAX));
	assert_false(view_has(v, UINT64_MAX, UINT64_MAX));
	assert_false(view_sub(v, 4, UINT64_MAX - 3, &sub));
	assert_false(view_u64(v, UINT64_MAX - 3, &u64));
}

static void view_lines_are_taken_when_they_are_whole(void **state)
{
	struct view text = view_str("first\n\nthird"), line, empty = {0};

	(void)state;
	assert_true(view_take_line(&text, &line));
	assert_true(view_eq(line, view_str("first")));
	assert_true(view_take_line(&text, &line));
	assert_int_equal(line.len, 0);
	assert_false(view_take_line(&text, &line));
	assert_true(view_eq(text, view_str("third")));
	assert_false(view_take_line(&empty, &line));
}

static void view_cstr_needs_its_nul(void **state)
{
	struct view v = view_of("ab\0cd", 5), s = {0};

	(void)state;
	assert_true(view_cstr(v, 1, &s));
	assert_true(view_eq(s, view_str("b")));
	assert_true(view_cstr(v, 2, &s));
	assert_int_equal(s.len, 0);
	assert_false(view_cstr(v, 3, &s));
	assert_false(view_cstr(v, 5, &s));
	assert_true(view_starts_with(v, "ab"));
	assert_false(view_starts_with(v, "abc"));
	assert_false(view_starts_with(v, "ab....."));
}

static void varints_come_back_as_they_went(void **state)
{
	const uint64_t values[] = {0, 1, 127, 128, 300, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
	_cleanup_(buf_release) struct buf b = {0};
	size_t off = 0;
	uint64_t got;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_int_equal(buf_append_varint(&b, values[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		assert_true(view_varint(buf_view(&b), &off, &got));
		assert_int_equal(got, values[i]);
	}
	assert_int_equal(off, b.len);
	assert_false(view_varint(buf_view(&b), &off, &got));
}

static void varint_over_64_bits_is_refused(void **state)
{
	const uint8_t eleven[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	const uint8_t too_large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
	const uint8_t cut[] = {0x80, 0x80};
	size_t off = 0;
	uint64_t got = 7;

	(void)state;
	assert_false(view_varint(view_of(eleven, sizeof(eleven)), &off, &got));
	assert_false(view_varint(view_of(too_large, sizeof(too_large)), &off, &got));
	assert_false(view_varint(view_of(cut, sizeof(cut)), &off, &got));
	assert_int_equal(off, 0);
	assert_int_equal(got, 7);
}

static void buf_grows_and_keeps_its_contents(void **state)
{
	_cleanup_(buf_release) struct buf b = {0};

	(void)state;
	for (unsigned int i = 0; i < 10000; i++)
		assert_int_equal(buf_append_byte(&b, (uint8_t)i), 0);
	assert_int_equal(b.len, 10000);
	for (unsigned int i = 0; i < 10000; i++)
		assert_int_equal(b.data[i], (uint8_t)i);
	buf_clear(&b);
	assert_int_equal(b.len, 0);
	assert_int_equal(buf_printf(&b, "%s-%d", "x", 5), 0);
	assert_int_equal(buf_append_str(&b, "!"), 0);
	assert_string_equal(buf_cstr(&b), "x-5!");
	assert_int_equal(b.len, 4);
}

static void buf_never_holds_more_than_its_maximum(void **state)
{
	const size_t maxima[] = {1, 10, 63, 64, 65, 100, 1000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(maxima); i++) {
		_cleanup_(buf_release) struct buf b = buf_with_max(maxima[i]);

		for (size_t k = 0; k < maxima[i]; k++)
			assert_int_equal(buf_append_byte(&b, 'x'), 0);
		assert_int_equal(buf_append_byte(&b, 'x'), -E2BIG);
		assert_int_equal(b.len, maxima[i]);
		assert_true(b.cap <= maxima[i]);
	}
}

static void buf_refuses_what_would_overflow(void **state)
{
	_cleanup_(buf_release) struct buf b = buf_with_max(SIZE_MAX);

	(void)state;
	assert_int_equal(buf_append_str(&b, "some"), 0);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -E2BIG);
	assert_int_equal(buf_reserve(&b, SIZE_MAX - 3), -E2BIG);
	assert_string_equal(buf_cstr(&b), "some");
}

static void failed_append_changes_nothing(void **state)
{
	_cleanup_(buf_release) struct buf b = buf_with_max(8);

	(void)state;
	assert_int_equal(buf_append_str(&b, "12345"), 0);
	assert_int_equal(buf_append_str(&b, "6789"), -E2BIG);
	assert_int_equal(buf_printf(&b, "%d", 123456), -E2BIG);
	assert_true(view_eq(buf_view(&b), view_str("12345")));
	assert_int_equal(buf_append_str(&b, "678"), 0);
	assert_null(buf_cstr(&b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(view_accessors_refuse_what_lies_past_the_end),
		cmocka_unit_test(view_gate_does_not_overflow),
		cmocka_unit_test(view_cstr_needs_its_nul),
		cmocka_unit_test(view_lines_are_taken_when_they_are_whole),
		cmocka_unit_test(varints_come_back_as_they_went),
		cmocka_unit_test(varint_over_64_bits_is_refused),
		cmocka_unit_test(buf_grows_and_keeps_its_contents),
		cmocka_unit_test(buf_never_holds_more_than_its_maximum),
		cmocka_unit_test(buf_refuses_what_would_overflow),
		cmocka_unit_test(failed_append_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
