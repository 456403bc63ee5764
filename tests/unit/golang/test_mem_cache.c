/* tests/unit/golang/test_mem_cache.c: cached windows of memory, and scans of it. */
#include "golang/binary/mem_cache.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "golang/binary/scan.h"
#include "mem_fake.h"

#define WINDOW ((size_t)8192)
#define BASE ((uint64_t)0x100000)

/* Memory in which each byte tells where it lies. */
struct room {
	struct proc_mem *mem;
	uint8_t *bytes;
	size_t len;
	struct golang_mem_cache windows;
};

static uint8_t byte_at(uint64_t addr)
{
	return (uint8_t)(addr * 0x9e3779b97f4a7c15ULL >> 56);
}

static void room_open(struct room *room, uint64_t addr, size_t len, size_t n, size_t max)
{
	struct err err;

	*room = (struct room){.len = len, .bytes = malloc(len)};
	assert_non_null(room->bytes);
	for (size_t i = 0; i < len; i++)
		room->bytes[i] = byte_at(addr + i);
	assert_int_equal(proc_mem_open_fake(&room->mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(room->mem, addr, room->bytes, len), 0);
	golang_mem_cache_init(&room->windows, room->mem, WINDOW, n, max);
}

static void room_close(struct room *room)
{
	golang_mem_cache_release(&room->windows);
	proc_mem_close(room->mem);
	free(room->bytes);
}

static void assert_got(struct golang_mem_cache *w, uint64_t addr, size_t len)
{
	int code = 0;
	const uint8_t *p = golang_mem_cache_get(w, addr, len, &code);

	assert_non_null(p);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], byte_at(addr + i));
}

static void assert_not_got(struct golang_mem_cache *w, uint64_t addr, size_t len, int expected)
{
	int code = 0;

	assert_null(golang_mem_cache_get(w, addr, len, &code));
	assert_int_equal(code, expected);
}

static void window_is_loaded_once(void **state)
{
	struct room room;

	(void)state;
	room_open(&room, BASE, 4 * WINDOW, 16, 16);
	assert_got(&room.windows, BASE + 100, 200);
	assert_int_equal(proc_mem_stats(room.mem).bytes, WINDOW);
	assert_got(&room.windows, BASE, WINDOW);
	assert_got(&room.windows, BASE + WINDOW - 1, 1);
	assert_int_equal(proc_mem_stats(room.mem).bytes, WINDOW);
	room_close(&room);
}

static void mapping_that_starts_within_a_window_is_read(void **state)
{
	struct room room;

	(void)state;
	room_open(&room, BASE + 4096 + 24, 3 * WINDOW, 16, 16);
	assert_got(&room.windows, BASE + 4096 + 24, 100);
	assert_got(&room.windows, BASE + WINDOW - 50, 100);
	assert_not_got(&room.windows, BASE + 4096 + 23, 1, -EFAULT);
	assert_not_got(&room.windows, BASE + 4096, 100, -EFAULT);
	room_close(&room);
}

static void read_across_windows_is_put_together(void **state)
{
	struct room room;

	(void)state;
	room_open(&room, BASE, 8 * WINDOW, 16, 16);
	assert_got(&room.windows, BASE + WINDOW - 1, 2);
	assert_got(&room.windows, BASE + 10, 5 * WINDOW);
	assert_got(&room.windows, BASE + WINDOW - 8, WINDOW + 16);
	/* With fewer windows than it spans. */
	golang_mem_cache_release(&room.windows);
	room.windows.n_windows = room.windows.max_windows = 4;
	assert_got(&room.windows, BASE, 8 * WINDOW);
	room_close(&room);
}

static void end_of_memory_is_an_error(void **state)
{
	struct room room;

	(void)state;
	room_open(&room, BASE, 2 * WINDOW + 100, 16, 16);
	assert_got(&room.windows, BASE + 2 * WINDOW, 100);
	assert_not_got(&room.windows, BASE + 2 * WINDOW, 101, -EFAULT);
	assert_not_got(&room.windows, BASE + 2 * WINDOW + 100, 1, -EFAULT);
	assert_not_got(&room.windows, BASE + WINDOW, 4 << 20, -EFAULT);
	assert_not_got(&room.windows, BASE, SIZE_MAX, -EFAULT);
	assert_not_got(&room.windows, 0, 8, -EFAULT);
	assert_not_got(&room.windows, UINT64_MAX, 1, -EFAULT);
	assert_not_got(&room.windows, UINT64_MAX - 100, 200, -EFAULT);
	/* Failures leave what is cached alone. */
	assert_got(&room.windows, BASE, 100);
	room_close(&room);
}

static void span_reaches_to_the_end_of_its_window(void **state)
{
	struct room room;
	size_t len = 0;
	int code;

	(void)state;
	room_open(&room, BASE, 2 * WINDOW, 16, 16);
	assert_non_null(golang_mem_cache_span(&room.windows, BASE + 100, &len, &code));
	assert_int_equal(len, WINDOW - 100);
	room_close(&room);
}

static void cache_grows_when_a_window_is_wanted_again(void **state)
{
	enum { N = 64 };
	struct room room;
	uint64_t bytes;

	(void)state;
	room_open(&room, BASE, N * WINDOW, 4, 128);
	/* Once through everything: nothing comes back, so nothing grows. */
	for (uint64_t i = 0; i < N; i++)
		assert_got(&room.windows, BASE + i * WINDOW, 16);
	assert_int_equal(room.windows.n_windows, 4);
	for (int pass = 0; pass < 20; pass++)
		for (uint64_t i = 0; i < N; i++)
			assert_got(&room.windows, BASE + i * WINDOW, 16);
	assert_in_range(room.windows.n_windows, N, 128);
	bytes = proc_mem_stats(room.mem).bytes;
	for (uint64_t i = 0; i < N; i++)
		assert_got(&room.windows, BASE + i * WINDOW, 16);
	assert_int_equal(proc_mem_stats(room.mem).bytes, bytes);
	room_close(&room);
}

static void cache_does_not_grow_beyond_its_maximum(void **state)
{
	struct room room;

	(void)state;
	room_open(&room, BASE, 64 * WINDOW, 4, 8);
	for (int pass = 0; pass < 20; pass++)
		for (uint64_t i = 0; i < 64; i++)
			assert_got(&room.windows, BASE + i * WINDOW, 16);
	assert_int_equal(room.windows.n_windows, 8);
	room_close(&room);
}

static void work_is_limited_and_can_be_refilled(void **state)
{
	struct room room;

	(void)state;
	room_open(&room, BASE, 4 * WINDOW, 16, 16);
	room.windows.work_left = WINDOW / 32 + 10;
	assert_got(&room.windows, BASE, 16); /* a load, and a look */
	for (int i = 0; i < 8; i++)
		assert_got(&room.windows, BASE, 16);
	assert_not_got(&room.windows, BASE, 16, -E2BIG);
	assert_true(golang_mem_cache_spent(&room.windows));
	assert_not_got(&room.windows, BASE + WINDOW, 16, -E2BIG);
	golang_mem_cache_refill(&room.windows);
	assert_false(golang_mem_cache_spent(&room.windows));
	assert_got(&room.windows, BASE + WINDOW, 16);
	assert_false(golang_mem_cache_spend(&room.windows, UINT64_MAX));
	assert_true(golang_mem_cache_spent(&room.windows));
	golang_mem_cache_release(&room.windows);
	assert_got(&room.windows, BASE, 16);
	room_close(&room);
}

/* Notes which bytes a scan has shown, and that they are right. */
struct seen {
	uint8_t *marks;
	uint64_t base;
	size_t len;
	size_t calls;
	int answer;
};

static int see(uint64_t addr, struct view bytes, void *arg)
{
	struct seen *seen = arg;

	for (size_t i = 0; i < bytes.len; i++) {
		assert_int_equal(bytes.data[i], byte_at(addr + i));
		assert_in_range(addr + i, seen->base, seen->base + seen->len - 1);
		seen->marks[addr + i - seen->base] = 1;
	}
	seen->calls++;
	return seen->answer;
}

static void scan_shows_all_that_is_readable(void **state)
{
	_cleanup_free_ uint8_t *marks = calloc(1, 2 << 20);
	struct seen seen = {.marks = marks, .base = BASE, .len = 2 << 20};
	struct golang_scan scan;
	struct room room;

	(void)state;
	assert_non_null(marks);
	room_open(&room, BASE + 24, 1000000, 4, 4);
	scan = golang_scan_of(room.mem);
	assert_int_equal(golang_scan(&scan, BASE, 2 << 20, 64, see, &seen), 0);
	/* The first page cannot be read from its start, and is stepped over. */
	for (size_t i = 4096; i < 24 + 1000000; i++)
		assert_int_equal(marks[i], 1);
	seen.answer = 42;
	seen.calls = 0;
	assert_int_equal(golang_scan(&scan, BASE + 24, 1000000, 64, see, &seen), 42);
	assert_int_equal(seen.calls, 1);
	room_close(&room);
}

static void scan_is_limited_in_sum(void **state)
{
	_cleanup_free_ uint8_t *marks = calloc(1, 1 << 20);
	struct seen seen = {.marks = marks, .base = BASE, .len = 1 << 20};
	struct golang_scan scan;
	struct room room;

	(void)state;
	assert_non_null(marks);
	room_open(&room, BASE, 1 << 20, 4, 4);
	scan = (struct golang_scan){.mem = room.mem, .left = 5 << 19};
	for (int i = 0; i < 2; i++)
		assert_int_equal(golang_scan(&scan, BASE, 1 << 20, 16, see, &seen), 0);
	assert_int_equal(golang_scan(&scan, BASE, 4ULL << 30, 16, see, &seen), -E2BIG);
	assert_int_equal(golang_scan(&scan, BASE, 16, 0, see, &seen), -E2BIG);
	room_close(&room);
}

/* A header can claim more than is mapped: going through that page by page would take seconds. */
static void scan_passes_a_hole_in_one_step(void **state)
{
	const uint64_t hole = 1ULL << 40;
	_cleanup_free_ uint8_t *marks = calloc(1, 1 << 20);
	struct seen seen = {.marks = marks, .base = BASE + hole, .len = 1 << 20};
	struct golang_scan scan;
	struct room room;

	(void)state;
	assert_non_null(marks);
	room_open(&room, BASE + hole, 1 << 20, 4, 4);
	scan = (struct golang_scan){.mem = room.mem, .left = 2 << 20};
	assert_int_equal(golang_scan(&scan, BASE, 2 * hole, 16, see, &seen), 0);
	for (size_t i = 0; i < seen.len; i++)
		assert_int_equal(marks[i], 1);
	room_close(&room);
}

static void scan_at_the_end_of_the_address_space_ends(void **state)
{
	uint8_t mark = 0;
	struct seen seen = {.marks = &mark};
	struct golang_scan scan;
	struct room room;

	(void)state;
	room_open(&room, BASE, WINDOW, 4, 4);
	scan = golang_scan_of(room.mem);
	assert_int_equal(golang_scan(&scan, UINT64_MAX - 100, 100, 8, see, &seen), 0);
	assert_int_equal(golang_scan(&scan, UINT64_MAX - 8191, 4096, 8, see, &seen), 0);
	assert_int_equal(golang_scan(&scan, UINT64_MAX - 8191, 8191, 8, see, &seen), 0);
	assert_int_equal(golang_scan(&scan, BASE, UINT64_MAX, 8, see, &seen), 0);
	assert_int_equal(golang_scan(&scan, BASE, 0, 8, see, &seen), 0);
	assert_int_equal(seen.calls, 0);
	room_close(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_is_loaded_once),
		cmocka_unit_test(mapping_that_starts_within_a_window_is_read),
		cmocka_unit_test(read_across_windows_is_put_together),
		cmocka_unit_test(end_of_memory_is_an_error),
		cmocka_unit_test(span_reaches_to_the_end_of_its_window),
		cmocka_unit_test(cache_grows_when_a_window_is_wanted_again),
		cmocka_unit_test(cache_does_not_grow_beyond_its_maximum),
		cmocka_unit_test(work_is_limited_and_can_be_refilled),
		cmocka_unit_test(scan_shows_all_that_is_readable),
		cmocka_unit_test(scan_is_limited_in_sum),
		cmocka_unit_test(scan_passes_a_hole_in_one_step),
		cmocka_unit_test(scan_at_the_end_of_the_address_space_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
