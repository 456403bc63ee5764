/* tests/unit/base/test_gzip.c: packing in pieces, and what unpacking refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/gzip.h"

static void pack(struct buf *out, struct view data, size_t piece)
{
	_cleanup_(gzip_writer_freep) struct gzip_writer *w = NULL;
	struct err err;

	assert_int_equal(gzip_writer_new(out, &w, &err), 0);
	for (size_t off = 0; off < data.len; off += piece) {
		struct view part = view_of(data.data + off, MIN(piece, data.len - off));

		assert_int_equal(gzip_writer_write(w, part), 0);
	}
	assert_int_equal(gzip_writer_finish(w), 0);
}

static void zeros(struct buf *b, size_t n)
{
	assert_int_equal(buf_reserve(b, n), 0);
	memset(b->data + b->len, 0, n);
	b->len += n;
}

static void what_is_packed_in_pieces_unpacks_whole(void **state)
{
	_cleanup_(buf_release) struct buf plain = {0}, packed = {0}, again = {0}, unpacked = {0};
	struct err err;

	(void)state;
	for (uint32_t i = 0; i < 50000; i++)
		assert_int_equal(buf_append_varint(&plain, i * 2654435761U), 0);
	pack(&packed, buf_view(&plain), 1000);
	pack(&again, buf_view(&plain), 1000);
	assert_true(view_eq(buf_view(&packed), buf_view(&again)));
	assert_true(gzip_is_packed(buf_view(&packed)));
	assert_int_equal(gzip_unpack(buf_view(&packed), &unpacked, &err), 0);
	assert_true(view_eq(buf_view(&plain), buf_view(&unpacked)));
}

static void the_header_carries_no_time(void **state)
{
	static const uint8_t none[4] = {0};
	_cleanup_(buf_release) struct buf packed = {0};

	(void)state;
	pack(&packed, view_str("x"), 1);
	assert_memory_equal(packed.data + 4, none, sizeof(none));
}

static void members_one_after_the_other_are_joined(void **state)
{
	_cleanup_(buf_release) struct buf packed = {0}, unpacked = {0};
	struct err err;

	(void)state;
	pack(&packed, view_str("first "), 3);
	pack(&packed, view_str("second"), 3);
	assert_int_equal(gzip_unpack(buf_view(&packed), &unpacked, &err), 0);
	assert_true(view_eq(buf_view(&unpacked), view_str("first second")));
}

static void every_truncation_is_malformed(void **state)
{
	_cleanup_(buf_release) struct buf packed = {0};

	(void)state;
	pack(&packed, view_str("some text that is long enough"), 100);
	for (size_t n = 2; n < packed.len; n++) {
		_cleanup_(buf_release) struct buf unpacked = {0};
		struct err err = {0};

		assert_int_equal(gzip_unpack(view_of(packed.data, n), &unpacked, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "truncated"));
	}
}

static void a_changed_byte_and_trailing_bytes_are_malformed(void **state)
{
	_cleanup_(buf_release) struct buf packed = {0}, a = {0}, b = {0};
	struct err err = {0};

	(void)state;
	pack(&packed, view_str("some text that is long enough"), 100);
	assert_int_equal(buf_append_str(&packed, "junk"), 0);
	assert_int_equal(gzip_unpack(buf_view(&packed), &a, &err), -EBADMSG);
	packed.len -= 4;
	packed.data[packed.len - 6] ^= 1; /* in the checksum */
	assert_int_equal(gzip_unpack(buf_view(&packed), &b, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "damaged"));
}

static void a_bomb_stops_at_the_limit(void **state)
{
	_cleanup_(buf_release) struct buf plain = {0}, packed = {0};
	_cleanup_(buf_release) struct buf fits = buf_with_max(8 << 20);
	_cleanup_(buf_release) struct buf small = buf_with_max((1 << 20) + 5);
	struct err err = {0};

	(void)state;
	zeros(&plain, 4 << 20);
	pack(&packed, buf_view(&plain), 4 << 20);
	assert_true(packed.len < 64 << 10);
	assert_int_equal(gzip_unpack(buf_view(&packed), &small, &err), -E2BIG);
	assert_true(small.cap <= small.max);
	assert_non_null(strstr(err.text, "unpacks to more than"));
	assert_int_equal(gzip_unpack(buf_view(&packed), &fits, &err), 0);
	assert_int_equal(fits.len, 4 << 20);
}

static void a_writer_that_runs_out_of_room_says_so(void **state)
{
	_cleanup_(buf_release) struct buf out = buf_with_max(100);
	_cleanup_(gzip_writer_freep) struct gzip_writer *w = NULL;
	struct err err;

	(void)state;
	assert_int_equal(gzip_writer_new(&out, &w, &err), 0);
	assert_int_equal(gzip_writer_write(w, view_str("x")), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_in_pieces_unpacks_whole),
		cmocka_unit_test(the_header_carries_no_time),
		cmocka_unit_test(members_one_after_the_other_are_joined),
		cmocka_unit_test(every_truncation_is_malformed),
		cmocka_unit_test(a_changed_byte_and_trailing_bytes_are_malformed),
		cmocka_unit_test(a_bomb_stops_at_the_limit),
		cmocka_unit_test(a_writer_that_runs_out_of_room_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
