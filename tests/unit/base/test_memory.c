/* tests/unit/base/test_memory.c: arena, map and intern. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/map.h"

static void arena_gives_zeroed_aligned_memory_of_its_own(void **state)
{
	_cleanup_(arena_release) struct arena a = {0};
	uint8_t *blocks[500];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		blocks[i] = arena_alloc(&a, i + 1);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % 8, 0);
		for (size_t k = 0; k <= i; k++)
			assert_int_equal(blocks[i][k], 0);
		memset(blocks[i], (int)(i & 0xff), i + 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
		for (size_t k = 0; k <= i; k++)
			assert_int_equal(blocks[i][k], i & 0xff);
}

static void arena_stops_at_its_limit_and_not_before(void **state)
{
	_cleanup_(arena_release) struct arena a = {.max = 10000};
	size_t n = 0;

	(void)state;
	while (arena_alloc(&a, 8))
		n++;
	assert_in_range(n, 10000 / 8 - 8, 10000 / 8);
	assert_true(a.used <= 10000);
	assert_null(arena_alloc(&a, 5000));
	arena_release(&a);
	assert_int_equal(a.used, 0);
	assert_int_equal(a.max, 10000);
	assert_non_null(arena_alloc(&a, 5000));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 4));
}

static void arena_holds_more_than_one_block(void **state)
{
	_cleanup_(arena_release) struct arena a = {0};
	char *text = arena_dup(&a, "first", 6);
	char *large = arena_alloc(&a, 1 << 20);

	(void)state;
	assert_non_null(large);
	memset(large, 'x', 1 << 20);
	assert_string_equal(text, "first");
}

static void map_finds_what_was_put(void **state)
{
	_cleanup_(map_release) struct map m = {0};
	uint64_t value = 77;

	(void)state;
	assert_false(map_get(&m, 0, &value));
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(map_put(&m, i * 4096, i), 0);
	assert_int_equal(m.len, 5000);
	for (uint64_t i = 0; i < 5000; i++) {
		assert_true(map_get(&m, i * 4096, &value));
		assert_int_equal(value, i);
	}
	value = 77;
	assert_false(map_get(&m, 1, &value));
	assert_false(map_get(&m, UINT64_MAX, &value));
	assert_int_equal(value, 77);
}

static void map_put_replaces(void **state)
{
	_cleanup_(map_release) struct map m = {0};
	uint64_t value;

	(void)state;
	assert_int_equal(map_put(&m, 0, 1), 0);
	assert_int_equal(map_put(&m, 0, 2), 0);
	assert_int_equal(map_put(&m, UINT64_MAX, 3), 0);
	assert_int_equal(m.len, 2);
	assert_true(map_get(&m, 0, &value));
	assert_int_equal(value, 2);
}

static void intern_numbers_by_first_appearance(void **state)
{
	_cleanup_(intern_release) struct intern in = {0};
	uint32_t id;

	(void)state;
	assert_int_equal(intern_add(&in, view_str(""), &id), 0);
	assert_int_equal(id, 0);
	assert_int_equal(intern_add(&in, view_str("main.main"), &id), 0);
	assert_int_equal(id, 1);
	assert_int_equal(intern_add(&in, view_of("a\0b", 3), &id), 0);
	assert_int_equal(id, 2);
	assert_int_equal(intern_add(&in, view_of("a\0c", 3), &id), 0);
	assert_int_equal(id, 3);
	assert_int_equal(intern_add(&in, view_str("main.main"), &id), 0);
	assert_int_equal(id, 1);
	assert_int_equal(in.len, 4);
	assert_true(intern_find(&in, view_of("a\0b", 3), &id));
	assert_int_equal(id, 2);
	assert_false(intern_find(&in, view_str("a"), &id));
	assert_int_equal(intern_get(&in, 4).len, 0);
}

static void intern_keeps_thousands_apart(void **state)
{
	_cleanup_(intern_release) struct intern in = {0};
	char text[32];
	uint32_t id;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		(void)snprintf(text, sizeof(text), "function.%u", i);
		assert_int_equal(intern_add(&in, view_str(text), &id), 0);
		assert_int_equal(id, i);
	}
	for (uint32_t i = 0; i < 20000; i++) {
		(void)snprintf(text, sizeof(text), "function.%u", i);
		assert_string_equal(intern_get(&in, i).data, text);
		assert_true(intern_find(&in, view_str(text), &id));
		assert_int_equal(id, i);
	}
}

static void every_byte_and_the_length_count_in_a_hash(void **state)
{
	uint8_t bytes[70] = {0};

	(void)state;
	for (size_t len = 0; len + 1 < sizeof(bytes); len++) {
		uint64_t hash = hash_bytes(bytes, len);

		assert_true(hash_bytes(bytes, len + 1) != hash);
		for (size_t i = 0; i < len; i++) {
			bytes[i] = 1;
			assert_true(hash_bytes(bytes, len) != hash);
			bytes[i] = 0;
		}
	}
}

static void the_length_is_part_of_a_hash_whatever_the_bytes_are(void **state)
{
	(void)state;
	/* The first byte of each is its length, and the rest is alike. */
	assert_true(hash_bytes("\x02"
			       "9",
			       2) != hash_bytes("\x03"
						"99",
						3));
	assert_true(hash_bytes("\x09"
			       "12345678",
			       9) != hash_bytes("\x0a"
						"123456778",
						10));
	assert_true(hash_bytes("\x09"
			       "11111111",
			       9) != hash_bytes("\x0a"
						"111111111",
						10));
}

static void intern_knows_the_hash_of_what_it_holds(void **state)
{
	_cleanup_(intern_release) struct intern in = {0};
	uint32_t id;

	(void)state;
	assert_int_equal(intern_add(&in, view_str("main.main"), &id), 0);
	assert_true(intern_hash(&in, id) == hash_bytes("main.main", 9));
	assert_true(intern_hash(&in, id + 1) == 0);
}

static void intern_stops_at_its_limit(void **state)
{
	_cleanup_(intern_release) struct intern in = {.bytes = {.max = 4096}};
	char text[64];
	uint32_t id = 0;
	int r = 0;

	(void)state;
	for (unsigned int i = 0; i < 1000 && r == 0; i++) {
		(void)snprintf(text, sizeof(text), "a name of some forty bytes, and number %u", i);
		r = intern_add(&in, view_str(text), &id);
	}
	assert_int_equal(r, -E2BIG);
	assert_in_range(in.len, 50, 4096 / 40);
	/* What is there already needs no memory. */
	assert_int_equal(intern_add(&in, intern_get(&in, 5), &id), 0);
	assert_int_equal(id, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_length_is_part_of_a_hash_whatever_the_bytes_are),
		cmocka_unit_test(arena_gives_zeroed_aligned_memory_of_its_own),
		cmocka_unit_test(arena_stops_at_its_limit_and_not_before),
		cmocka_unit_test(arena_holds_more_than_one_block),
		cmocka_unit_test(map_finds_what_was_put),
		cmocka_unit_test(map_put_replaces),
		cmocka_unit_test(intern_numbers_by_first_appearance),
		cmocka_unit_test(intern_keeps_thousands_apart),
		cmocka_unit_test(every_byte_and_the_length_count_in_a_hash),
		cmocka_unit_test(intern_knows_the_hash_of_what_it_holds),
		cmocka_unit_test(intern_stops_at_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
