/*
 * tests/unit/store/test_seal.c: checksums of pages and of the log: one flipped bit is corrected to
 * what was there, or known as damage; nothing else is taken for one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "store/sqlite/seal.h"

#define STEP 61 /* bits between two that are tried; all bytes and all bits of a byte come */

/* The same at each run. */
static void fill(uint8_t *bytes, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

static void flip(uint8_t *bytes, size_t bit)
{
	bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
}

static void a_flipped_bit_of_a_page_is_corrected(void **state)
{
	uint8_t page[STORE_SEAL_PAGE], now[STORE_SEAL_PAGE];

	(void)state;
	fill(page, sizeof(page), 1);
	store_seal_page(page, 7);
	for (size_t bit = 0; bit < sizeof(page) * 8; bit += STEP) {
		enum store_seal seal;

		memcpy(now, page, sizeof(page));
		flip(now, bit);
		seal = store_seal_check_page(now, 7, true);
		/* The second sum is only looked at where the first does not fit. */
		if (bit >= (STORE_SEAL_PAGE - 4) * 8) {
			assert_int_equal(seal, STORE_SEAL_WHOLE);
			continue;
		}
		assert_int_equal(seal, STORE_SEAL_CORRECTED);
		assert_memory_equal(now, page, sizeof(page));
	}
}

static void two_flipped_bits_of_a_page_are_damage(void **state)
{
	uint8_t page[STORE_SEAL_PAGE], now[STORE_SEAL_PAGE];

	(void)state;
	fill(page, sizeof(page), 2);
	store_seal_page(page, 7);
	for (size_t bit = 0; bit < (STORE_SEAL_PAGE - 8) * 8; bit += STEP) {
		memcpy(now, page, sizeof(page));
		flip(now, bit);
		flip(now, (bit * 31 + 17) % ((STORE_SEAL_PAGE - 8) * 8));
		assert_int_equal(store_seal_check_page(now, 7, true), STORE_SEAL_BROKEN);
	}
}

static void a_page_in_the_place_of_another_is_damage(void **state)
{
	uint8_t page[STORE_SEAL_PAGE];

	(void)state;
	fill(page, sizeof(page), 3);
	store_seal_page(page, 7);
	assert_int_equal(store_seal_check_page(page, 7, true), STORE_SEAL_WHOLE);
	for (uint32_t number = 0; number < 100; number++)
		if (number != 7)
			assert_int_equal(store_seal_check_page(page, number, true),
					 STORE_SEAL_BROKEN);
	memset(page, 0, sizeof(page));
	assert_int_equal(store_seal_check_page(page, 1, true), STORE_SEAL_BROKEN);
}

/* --- the log, as SQLite's documentation of its format has it */

static void put_be(uint8_t *at, uint32_t word)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(word >> (24 - 8 * i));
}

static uint32_t get_word(const uint8_t *at, bool big)
{
	return big ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
		   : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static void add(uint32_t sums[2], const uint8_t *data, size_t n, bool big)
{
	for (size_t i = 0; i < n; i += 8) {
		sums[0] += get_word(data + i, big) + sums[1];
		sums[1] += get_word(data + i + 4, big) + sums[0];
	}
}

static void make_head(uint8_t head[STORE_SEAL_LOG_HEAD], bool big)
{
	uint32_t sums[2] = {0};

	put_be(head, 0x377f0682U | big);
	put_be(head + 4, 3007000);
	put_be(head + 8, STORE_SEAL_PAGE);
	put_be(head + 12, 3);
	fill(head + 16, 8, 5);
	add(sums, head, 24, big);
	put_be(head + 24, sums[0]);
	put_be(head + 28, sums[1]);
}

static void make_frame(const uint8_t *head, const uint8_t before[8], uint8_t *frame, bool big)
{
	uint32_t sums[2] = {get_word(before, true), get_word(before + 4, true)};

	fill(frame + STORE_SEAL_FRAME_HEAD, STORE_SEAL_PAGE, 6);
	put_be(frame, 9);
	put_be(frame + 4, 30);
	memcpy(frame + 8, head + 16, 8);
	add(sums, frame, 8, big);
	add(sums, frame + STORE_SEAL_FRAME_HEAD, STORE_SEAL_PAGE, big);
	put_be(frame + 16, sums[0]);
	put_be(frame + 20, sums[1]);
}

static void a_flipped_bit_of_the_log_is_corrected_or_known(void **state)
{
	uint8_t head[STORE_SEAL_LOG_HEAD], before[8], frame[STORE_SEAL_FRAME],
		now[STORE_SEAL_FRAME];

	(void)state;
	for (int big = 0; big < 2; big++) {
		size_t corrected = 0, known = 0;

		make_head(head, big);
		memcpy(before, head + 24, 8);
		make_frame(head, before, frame, big);
		memcpy(now, frame, sizeof(frame));
		assert_int_equal(store_seal_check_frame(head, before, now), STORE_SEAL_WHOLE);
		for (size_t bit = 0; bit < sizeof(frame) * 8; bit += STEP) {
			enum store_seal seal;

			memcpy(now, frame, sizeof(frame));
			flip(now, bit);
			seal = store_seal_check_frame(head, before, now);
			assert_int_not_equal(seal, STORE_SEAL_WHOLE);
			assert_int_not_equal(seal, STORE_SEAL_BROKEN);
			if (seal == STORE_SEAL_CORRECTED)
				assert_memory_equal(now, frame, sizeof(frame));
			corrected += seal == STORE_SEAL_CORRECTED;
			known += seal == STORE_SEAL_FLIPPED;
		}
		assert_true(corrected > known);
	}
}

static void a_flipped_bit_of_the_head_of_the_log_is_corrected_or_known(void **state)
{
	uint8_t head[STORE_SEAL_LOG_HEAD], now[STORE_SEAL_LOG_HEAD];
	size_t corrected = 0;

	(void)state;
	make_head(head, false);
	for (size_t bit = 0; bit < sizeof(head) * 8; bit++) {
		enum store_seal seal;

		memcpy(now, head, sizeof(head));
		flip(now, bit);
		seal = store_seal_check_log(now);
		assert_true(seal == STORE_SEAL_CORRECTED || seal == STORE_SEAL_FLIPPED ||
			    (seal == STORE_SEAL_BROKEN && bit / 8 == 3));
		if (seal == STORE_SEAL_CORRECTED)
			assert_memory_equal(now, head, sizeof(head));
		corrected += seal == STORE_SEAL_CORRECTED;
	}
	assert_true(corrected > 200);
}

static void frames_of_an_earlier_round_and_torn_ones_are_neither(void **state)
{
	uint8_t head[STORE_SEAL_LOG_HEAD], before[8], frame[STORE_SEAL_FRAME];

	(void)state;
	make_head(head, false);
	memcpy(before, head + 24, 8);
	make_frame(head, before, frame, false);
	/* Its head was written, its page was not. */
	fill(frame + STORE_SEAL_FRAME_HEAD, STORE_SEAL_PAGE, 77);
	assert_int_equal(store_seal_check_frame(head, before, frame), STORE_SEAL_BROKEN);
	make_frame(head, before, frame, false);
	put_be(frame + 8, get_word(frame + 8, true) + 1);
	put_be(frame + 12, 12345);
	assert_int_equal(store_seal_check_frame(head, before, frame), STORE_SEAL_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flipped_bit_of_a_page_is_corrected),
		cmocka_unit_test(two_flipped_bits_of_a_page_are_damage),
		cmocka_unit_test(a_page_in_the_place_of_another_is_damage),
		cmocka_unit_test(a_flipped_bit_of_the_log_is_corrected_or_known),
		cmocka_unit_test(a_flipped_bit_of_the_head_of_the_log_is_corrected_or_known),
		cmocka_unit_test(frames_of_an_earlier_round_and_torn_ones_are_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
