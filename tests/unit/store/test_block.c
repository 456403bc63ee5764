/* tests/unit/store/test_block.c: the codec of blocks, with good and with hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "store/codec/block.h"
#include "store/codec/chunk.h"
#include "store/sqlite/day.h"

struct fixture {
	struct store_codec codec;
	struct buf out;
	struct store_block_sums sums;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->sums.values = calloc(STORE_BLOCK_MAX_STACK + 1, sizeof(*f->sums.values));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_codec_release(&f->codec);
	buf_release(&f->out);
	free(f->sums.values);
	free(f);
	return 0;
}

static void crc_is_castagnoli(void **state)
{
	(void)state;
	assert_int_equal(crc32c(view_str("123456789")), 0xe3069283);
	assert_int_equal(crc32c(view_of(NULL, 0)), 0);
}

/* SQLite has NULL for it, from which nothing may be copied, not even 0 bytes. */
static void column_without_a_value_is_an_empty_view(void **state)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT NULL, x'', x'01'", -1, &stmt, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	for (int i = 0; i < 3; i++) {
		struct view v = store_day_blob(stmt, i);

		assert_non_null(v.data);
		assert_int_equal(v.len, i == 2);
	}
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
}

static void values_are_sorted_merged_and_rid_of_zeros(void **state)
{
	struct store_block_value v[] = {
		{STORE_BLOCK_MAX_STACK, 5}, {3, 1}, {7, 4}, {3, 2}, {7, -4}, {0, INT64_MIN}};
	struct store_block_value tmp[6];

	(void)state;
	assert_int_equal(store_block_normalise(v, 6, tmp), 3);
	assert_true(v[0].stack == 0 && v[0].value == -INT64_MAX);
	assert_true(v[1].stack == 3 && v[1].value == 3);
	assert_true(v[2].stack == STORE_BLOCK_MAX_STACK && v[2].value == 5);
}

static void sums_come_back_and_stop_at_the_limits(void **state)
{
	const struct store_block_value v[] = {
		{1, INT64_MAX}, {2, -INT64_MAX}, {9, -70}, {200000, 35}};
	struct fixture *f = *state;

	assert_int_equal(store_block_encode_sums(&f->codec, v, 4, 17, &f->out), 0);
	assert_int_equal(store_block_sum_sums(&f->codec, buf_view(&f->out), &f->sums), 0);
	assert_true(f->sums.values[1] == INT64_MAX && f->sums.values[9] == -70);
	assert_true(f->sums.n_stacks == 200001 && f->sums.samples == 17);
	assert_int_equal(store_block_sum_sums(&f->codec, buf_view(&f->out), &f->sums), 0);
	assert_true(f->sums.values[1] == INT64_MAX && f->sums.values[2] == -INT64_MAX);
	assert_int_equal(f->sums.values[200000], 70);
}

/* Three times; stack 4 at all of them, stack 6 at the last. */
static void encode_hour(struct fixture *f, bool differences)
{
	static const uint32_t times[] = {0, 1500, 3599999};
	static const struct store_block_sample s[] = {
		{4, 0, 10}, {4, 1, 10}, {4, 2, -30}, {6, 2, 500}};
	const struct store_block_hour hour = {times, 3, s, 4};

	assert_int_equal(store_block_encode_pack(&f->codec, &hour, differences, &f->out), 0);
}

static void packs_sum_the_times_of_the_window(void **state)
{
	struct fixture *f = *state;

	for (int differences = 0; differences < 2; differences++) {
		f->sums.values[4] = f->sums.values[6] = 0;
		f->sums.samples = 0;
		encode_hour(f, differences);
		assert_int_equal(store_block_sum_pack(&f->codec, buf_view(&f->out), 0,
						      STORE_BLOCK_HOUR_MS, &f->sums),
				 0);
		assert_true(f->sums.values[4] == -10 && f->sums.values[6] == 500);
		assert_int_equal(
			store_block_sum_pack(&f->codec, buf_view(&f->out), 1500, 3599999, &f->sums),
			0);
		assert_true(f->sums.values[4] == 0 && f->sums.values[6] == 500);
		assert_int_equal(f->sums.samples, 5);
		assert_int_equal(
			store_block_sum_pack(&f->codec, buf_view(&f->out), 1, 1500, &f->sums), 0);
		assert_int_equal(f->sums.samples, 5);
	}
}

#define MANY 3000U

/* Values of 1 bit up to so many; the second and the third of four times are in the window. */
static void check_lengths(struct fixture *f, unsigned int bits, bool differences)
{
	static const uint32_t times[] = {0, 1000, 2000, 3000};
	static struct store_block_sample s[MANY];
	const struct store_block_hour hour = {times, 4, s, MANY};
	int64_t expected[2][MANY] = {0};
	uint64_t word = bits;

	for (uint32_t i = 0, stack = 1, time = 0; i < MANY; i++) {
		word = word * 6364136223846793005ULL + 1442695040888963407ULL;
		s[i] = (struct store_block_sample){stack, time,
						   (int64_t)(word >> 33 >> (31 - i % bits))};
		s[i].value = word & 1 << 20 ? -s[i].value : s[i].value;
		expected[0][stack] += s[i].value;
		expected[1][stack] += time == 1 || time == 2 ? s[i].value : 0;
		time += 1 + (word >> 40) % 2;
		stack += time > 3;
		time = time > 3 ? 0 : time;
	}
	assert_int_equal(store_block_encode_pack(&f->codec, &hour, differences, &f->out), 0);
	for (unsigned int part = 0; part < 2; part++) {
		memset(f->sums.values, 0, MANY * sizeof(*f->sums.values));
		assert_int_equal(store_block_sum_pack(&f->codec, buf_view(&f->out), part ? 1000 : 0,
						      part ? 3000 : STORE_BLOCK_HOUR_MS, &f->sums),
				 0);
		assert_memory_equal(f->sums.values, expected[part], sizeof(expected[part]));
	}
}

static void packs_sum_values_of_all_lengths(void **state)
{
	for (unsigned int bits = 1; bits <= 31; bits++) {
		check_lengths(*state, bits, false);
		check_lengths(*state, bits, true);
	}
}

static void every_changed_or_missing_byte_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct view whole;

	encode_hour(f, false);
	whole = buf_view(&f->out);
	for (size_t i = 0; i < whole.len; i++) {
		assert_int_equal(store_block_sum_pack(&f->codec, view_of(whole.data, i), 0,
						      STORE_BLOCK_HOUR_MS, &f->sums),
				 -EBADMSG);
		for (int bit = 0; bit < 8; bit++) {
			f->out.data[i] ^= (uint8_t)(1 << bit);
			assert_int_equal(store_block_sum_pack(&f->codec, whole, 0,
							      STORE_BLOCK_HOUR_MS, &f->sums),
					 -EBADMSG);
			f->out.data[i] ^= (uint8_t)(1 << bit);
		}
	}
	assert_int_equal(store_block_sum_sums(&f->codec, whole, &f->sums), -EBADMSG);
}

/* A sums block of raw columns with a right checksum. */
static int sum_forged(struct fixture *f, const uint64_t *header, struct view ids,
		      struct view values)
{
	struct store_codec none = {0};
	int r;

	assert_int_equal(store_codec_begin(&f->out, STORE_CODEC_SUMS), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(buf_append_varint(&f->out, header[i]), 0);
	assert_int_equal(store_codec_put_column(&none, &f->out, ids, 1), 0);
	assert_int_equal(store_codec_put_column(&none, &f->out, values, 1), 0);
	store_codec_end(&f->out);
	r = store_block_sum_sums(&f->codec, buf_view(&f->out), &f->sums);
	store_codec_release(&none);
	return r;
}

static void forged_sums_are_refused(void **state)
{
	const struct view good = view_of("\x01\x01", 2), far = view_of("\xff\xff\xff\x7f", 4);
	const struct view huge = view_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
	const struct view endless = view_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11);
	struct fixture *f = *state;

	assert_int_equal(sum_forged(f, (const uint64_t[]){2, 2, 1}, good, good), 0);
	assert_int_equal(sum_forged(f, (const uint64_t[]){3, 3, 1}, good, good), -EBADMSG);
	assert_int_equal(sum_forged(f, (const uint64_t[]){UINT64_MAX, 1, 1}, good, good), -EBADMSG);
	assert_int_equal(sum_forged(f, (const uint64_t[]){1, 1, 0}, good, good), -EBADMSG);
	assert_int_equal(sum_forged(f, (const uint64_t[]){1, 1, UINT64_MAX}, good, good), -EBADMSG);
	assert_int_equal(sum_forged(f, (const uint64_t[]){1, 1, 1}, far, good), -EBADMSG);
	assert_int_equal(sum_forged(f, (const uint64_t[]){1, 1, 7}, good, huge), -EBADMSG);
	assert_int_equal(sum_forged(f, (const uint64_t[]){1, 1, 1}, good, endless), -EBADMSG);
}

static int count_stack(void *ctx, const struct store_chunk_stack *s, uint32_t shared)
{
	static const uint32_t first[] = {1, 2, 3};
	int *seen = ctx;

	if (s->id == 8) {
		assert_int_equal(s->n, 3);
		assert_memory_equal(s->frames, first, sizeof(first));
	}
	assert_true(shared <= s->n);
	++*seen;
	return 0;
}

static void stacks_come_back_sorted_with_their_ids(void **state)
{
	static const uint32_t a[] = {1, 9}, b[] = {1, 2, 3};
	struct store_chunk_stack stacks[] = {{200000, 2, a}, {8, 3, b}, {2, 0, NULL}};
	struct fixture *f = *state;
	int seen = 0;

	assert_int_equal(store_chunk_encode_stacks(&f->codec, stacks, 3, &f->out), 0);
	assert_int_equal(
		store_chunk_decode_stacks(&f->codec, buf_view(&f->out), count_stack, &seen), 0);
	assert_int_equal(seen, 3);
}

static int keep_wide(void *ctx, const struct store_chunk_stack *s, uint32_t shared)
{
	uint32_t *frames = ctx;

	(void)shared;
	memcpy(frames, s->frames, s->n * sizeof(*frames));
	return 0;
}

static void frame_ids_past_two_bytes_come_back(void **state)
{
	static const uint32_t a[] = {65535, 65536, STORE_CHUNK_MAX_FRAMES - 1};
	struct store_chunk_stack stacks[] = {{1, 3, a}};
	struct fixture *f = *state;
	uint32_t frames[STORE_CHUNK_MAX_DEPTH] = {0};

	for (uint32_t n = 1; n <= 3; n++) {
		stacks[0].n = n;
		assert_int_equal(store_chunk_encode_stacks(&f->codec, stacks, 1, &f->out), 0);
		assert_int_equal(
			store_chunk_decode_stacks(&f->codec, buf_view(&f->out), keep_wide, frames),
			0);
		assert_memory_equal(frames, a, n * sizeof(*a));
	}
}

/* One stack 1 of two frames; the bytes of their ids are given. */
static int decode_forged(struct fixture *f, enum store_codec_kind kind, uint64_t width,
			 struct view ids, uint32_t *frames)
{
	const struct view columns[] = {view_of("\x02", 1), view_of("\x00", 1), view_of("\x02", 1),
				       ids};
	struct store_codec none = {0};

	assert_int_equal(store_codec_begin(&f->out, kind), 0);
	assert_int_equal(buf_append_varint(&f->out, 1), 0);
	if (kind == STORE_CODEC_STACKS)
		assert_int_equal(buf_append_varint(&f->out, width), 0);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		assert_int_equal(store_codec_put_column(&none, &f->out, columns[i], 1), 0);
	store_codec_end(&f->out);
	store_codec_release(&none);
	return store_chunk_decode_stacks(&f->codec, buf_view(&f->out), keep_wide, frames);
}

static void stacks_of_format_1_are_read_and_forged_ones_refused(void **state)
{
	static const uint32_t wanted[] = {5, 300};
	struct fixture *f = *state;
	uint32_t frames[STORE_CHUNK_MAX_DEPTH] = {0};

	assert_int_equal(
		decode_forged(f, STORE_CODEC_STACKS_1, 0, view_of("\x05\xac\x02", 3), frames), 0);
	assert_memory_equal(frames, wanted, sizeof(wanted));
	memset(frames, 0, sizeof(frames));
	assert_int_equal(
		decode_forged(f, STORE_CODEC_STACKS, 2, view_of("\x05\0\x2c\x01", 4), frames), 0);
	assert_memory_equal(frames, wanted, sizeof(wanted));
	assert_int_equal(decode_forged(f, STORE_CODEC_STACKS, 2, view_of("\x05\0\x2c", 3), frames),
			 -EBADMSG);
	assert_int_equal(
		decode_forged(f, STORE_CODEC_STACKS, 3, view_of("\x05\0\0\x2c\x01\0", 6), frames),
		-EBADMSG);
	assert_int_equal(
		decode_forged(f, STORE_CODEC_STACKS, 4, view_of("\0\0\0\0\0\0\x04\0", 8), frames),
		-EBADMSG);
	assert_int_equal(
		decode_forged(f, STORE_CODEC_STACKS_1, 0, view_of("\x05\x80\x80\x10", 4), frames),
		-EBADMSG);
}

static int check_frame(void *ctx, uint32_t id, const struct store_chunk_frame *f)
{
	const char *const *module = ctx;

	assert_int_equal(id, 7);
	assert_true(view_eq(f->name, view_str("f")) && view_eq(f->file, view_str("f.c")));
	assert_int_equal(f->line, 3);
	assert_true(view_eq(f->module, view_str(*module)));
	return 0;
}

/* The frame f, f.c:3, with so many columns; modules: the bytes of the last. */
static int decode_frame(struct fixture *f, size_t n_columns, struct view modules,
			const char *module)
{
	const struct view columns[] = {view_of("\x01"
					       "f",
					       2),
				       view_of("\x03"
					       "f.c",
					       4),
				       view_of("\x06", 1), modules};
	struct store_codec none = {0};

	assert_int_equal(store_codec_begin(&f->out, STORE_CODEC_FRAMES), 0);
	assert_int_equal(buf_append_varint(&f->out, 7), 0);
	assert_int_equal(buf_append_varint(&f->out, 1), 0);
	for (size_t i = 0; i < n_columns; i++)
		assert_int_equal(store_codec_put_column(&none, &f->out, columns[i], 1), 0);
	store_codec_end(&f->out);
	store_codec_release(&none);
	return store_chunk_decode_frames(&f->codec, buf_view(&f->out), check_frame, &module);
}

static void frames_of_older_versions_have_no_modules(void **state)
{
	const struct store_chunk_frame frame = {
		.name = view_str("f"), .file = view_str("f.c"), .module = view_str("a"), .line = 3};
	struct fixture *f = *state;
	const char *module = "a";

	assert_int_equal(decode_frame(f, 3, view_str(""), ""), 0);
	assert_int_equal(decode_frame(f, 4,
				      view_of("\x01"
					      "a",
					      2),
				      "a"),
			 0);
	assert_int_equal(decode_frame(f, 4,
				      view_of("\x02"
					      "a",
					      2),
				      "a"),
			 -EBADMSG);
	assert_int_equal(decode_frame(f, 4, view_str(""), "a"), -EBADMSG);
	assert_int_equal(store_chunk_encode_frames(&f->codec, 7, &frame, 1, &f->out), 0);
	assert_int_equal(
		store_chunk_decode_frames(&f->codec, buf_view(&f->out), check_frame, &module), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_is_castagnoli),
		cmocka_unit_test(column_without_a_value_is_an_empty_view),
		cmocka_unit_test(values_are_sorted_merged_and_rid_of_zeros),
		cmocka_unit_test_setup_teardown(sums_come_back_and_stop_at_the_limits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(packs_sum_the_times_of_the_window, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_of_older_versions_have_no_modules, setup,
						teardown),
		cmocka_unit_test_setup_teardown(packs_sum_values_of_all_lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(every_changed_or_missing_byte_is_noticed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(forged_sums_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_come_back_sorted_with_their_ids, setup,
						teardown),
		cmocka_unit_test_setup_teardown(frame_ids_past_two_bytes_come_back, setup,
						teardown),
		cmocka_unit_test_setup_teardown(stacks_of_format_1_are_read_and_forged_ones_refused,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
