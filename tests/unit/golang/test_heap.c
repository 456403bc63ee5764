/* tests/unit/golang/test_heap.c: deltas of a made-up program whose counts change between readings.
 */
#include "golang/heap/heap.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test_heap.h"

static void set_counts(struct fixture *f, size_t bucket, uint64_t allocs, uint64_t frees)
{
	program_u64(&f->program, counts_at(bucket), allocs);
	program_u64(&f->program, counts_at(bucket) + 8, frees);
}

struct totals {
	int64_t alloc_objects;
	int64_t alloc_space;
	int64_t inuse_space;
	size_t samples;
};

static struct totals totals_of(const struct profile *p)
{
	struct totals t = {.samples = profile_n_samples(p)};

	for (size_t i = 0; i < t.samples; i++) {
		const int64_t *values = profile_sample_at(p, i)->values;

		t.alloc_objects += values[0];
		t.alloc_space += values[1];
		t.inuse_space += values[3];
	}
	return t;
}

static struct totals read_delta(struct fixture *f)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err;

	assert_int_equal(golang_heap_read(f->heap, &err), 0);
	assert_int_equal(golang_heap_delta_profile(f->heap, &p, &err), 0);
	golang_heap_trim(f->heap);
	return totals_of(p);
}

static struct totals read_cumulative(struct fixture *f)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err;

	assert_int_equal(golang_heap_read(f->heap, &err), 0);
	assert_int_equal(golang_heap_profile(f->heap, &p, &err), 0);
	return totals_of(p);
}

/* Two samples of two profiles have the same addresses, functions, files and lines. */
static void assert_same_stack(const struct profile *a, uint32_t x, const struct profile *b,
			      uint32_t y)
{
	uint32_t n, m;
	const uint32_t *p = profile_stack_at(a, x, &n), *q = profile_stack_at(b, y, &m);

	assert_int_equal(n, m);
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_location *l = profile_location_at(a, p[i]);
		const struct profile_location *k = profile_location_at(b, q[i]);

		assert_int_equal(l->address, k->address);
		assert_int_equal(l->n_lines, k->n_lines);
		for (uint32_t j = 0; j < l->n_lines; j++) {
			const struct profile_function *f =
				profile_function_at(a, l->lines[j].function);
			const struct profile_function *g =
				profile_function_at(b, k->lines[j].function);

			assert_int_equal(l->lines[j].line, k->lines[j].line);
			assert_string_equal(profile_cstring(a, f->name),
					    profile_cstring(b, g->name));
			assert_string_equal(profile_cstring(a, f->file),
					    profile_cstring(b, g->file));
			assert_int_equal(f->start_line, g->start_line);
		}
	}
}

/* A reading as a delta and as a profile; all buckets must be in use, for others are left out. */
static void assert_delta_equals_profile(struct fixture *f, size_t samples)
{
	_cleanup_(profile_freep) struct profile *delta = NULL, *whole = NULL;
	struct err err;

	assert_int_equal(golang_heap_read(f->heap, &err), 0);
	assert_int_equal(golang_heap_delta_profile(f->heap, &delta, &err), 0);
	golang_heap_trim(f->heap);
	assert_int_equal(golang_heap_profile(f->heap, &whole, &err), 0);
	golang_heap_trim(f->heap);
	assert_int_equal(profile_n_samples(delta), samples);
	assert_int_equal(profile_n_samples(whole), samples);
	assert_int_equal(profile_n_locations(delta), profile_n_locations(whole));
	assert_int_equal(profile_n_functions(delta), profile_n_functions(whole));
	for (size_t i = 0; i < samples; i++) {
		const struct profile_sample *a = profile_sample_at(delta, i);
		const struct profile_sample *b = profile_sample_at(whole, i);

		assert_same_stack(delta, a->stack, whole, b->stack);
		assert_int_equal(a->values[3], b->values[3]);
	}
}

static void deltas_name_the_same_functions_as_profiles(void **state)
{
	static struct fixture f;
	size_t n = 0;

	(void)state;
	program_build(&f.program);
	for (; n < 5; n++)
		program_bucket(&f.program, 64, 5, 3);
	fixture_open(&f);
	assert_delta_equals_profile(&f, n);
	assert_delta_equals_profile(&f, n);
	/* Stacks of known addresses and of new ones join later. */
	for (; n < 50; n++)
		program_bucket(&f.program, n < 40 ? 128 : 256, 5, 3);
	assert_delta_equals_profile(&f, n);
	program_bucket(&f.program, 32, 5, 3);
	assert_delta_equals_profile(&f, n + 1);
	fixture_close(&f);
}

static void assert_main_is_named(struct fixture *f)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err;

	assert_int_equal(golang_heap_read(f->heap, &err), 0);
	assert_int_equal(golang_heap_delta_profile(f->heap, &p, &err), 0);
	golang_heap_trim(f->heap);
	assert_int_equal(profile_n_functions(p), 1);
	assert_string_equal(profile_cstring(p, profile_function_at(p, 0)->name), "main.main");
}

static void stacks_are_looked_up_once(void **state)
{
	static struct fixture f;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 5, 3);
	fixture_open(&f);
	assert_main_is_named(&f);
	/* Tables that are gone are not missed. */
	memset(f.program.bytes + PROGRAM_NAMES, 0xff, PROGRAM_CODE - PROGRAM_NAMES);
	assert_main_is_named(&f);
	fixture_close(&f);
}

static void first_delta_is_a_baseline_and_in_use_is_absolute(void **state)
{
	static struct fixture f;
	struct totals t;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 5, 3);
	program_bucket(&f.program, 128, 4, 4);
	fixture_open(&f);
	t = read_delta(&f);
	assert_int_equal(t.alloc_objects, 0);
	assert_int_equal(t.alloc_space, 0);
	assert_int_equal(t.inuse_space, 128);
	assert_int_equal(t.samples, 1); /* the one where nothing is left is not shown */
	set_counts(&f, 0, 8, 3);
	t = read_delta(&f);
	assert_int_equal(t.alloc_objects, 3);
	assert_int_equal(t.alloc_space, 3 * 64);
	assert_int_equal(t.inuse_space, 5 * 64);
	t = read_delta(&f);
	assert_int_equal(t.alloc_space, 0);
	assert_int_equal(t.inuse_space, 5 * 64);
	fixture_close(&f);
}

/* Buckets beside those of the program: more than fit into it. */
enum { MANY = GOLANG_HEAP_MAX_STACKS + 500, MANY_BYTES = MANY * 256 };
#define MANY_BASE (PROGRAM_BASE + ((uint64_t)1 << 30))

static void many_buckets(struct program *program, uint8_t *bytes)
{
	uint64_t next = 0;

	for (size_t i = 0; i < MANY; i++) {
		struct program one = {.buckets_end = PROGRAM_BUCKETS};
		size_t len;

		/* The last 500 are the smallest. */
		program_u64(&one, PROGRAM_MBUCKETS, next);
		program_bucket(&one, 16 + 16 * (MANY - i), 1, 0);
		len = one.buckets_end - PROGRAM_BUCKETS;
		assert_true(len <= 256);
		memcpy(bytes + i * 256, one.bytes + PROGRAM_BUCKETS, len);
		next = MANY_BASE + i * 256;
	}
	program_u64(program, PROGRAM_MBUCKETS, next);
}

static void of_very_many_stacks_the_smallest_become_one(void **state)
{
	_cleanup_free_ uint8_t *bytes = calloc(1, MANY_BYTES);
	_cleanup_(profile_freep) struct profile *p = NULL, *snapshot = NULL;
	const struct profile_location *l;
	const struct profile_sample *last;
	struct proc_mem *mem = fake_of_amd64();
	static struct fixture f;
	struct totals t;
	struct err err;
	uint32_t n;

	(void)state;
	assert_non_null(bytes);
	program_build(&f.program);
	many_buckets(&f.program, bytes);
	assert_int_equal(proc_mem_fake_add(mem, PROGRAM_BASE, f.program.bytes, PROGRAM_BYTES), 0);
	assert_int_equal(proc_mem_fake_add(mem, MANY_BASE, bytes, MANY_BYTES), 0);
	assert_int_equal(golang_process_open_take(mem, NULL, &f.process, &err), 0);
	assert_int_equal(golang_heap_new(f.process, &f.heap, &err), 0);
	assert_int_equal(golang_heap_read(f.heap, &err), 0);
	assert_int_equal(golang_heap_delta_profile(f.heap, &p, &err), 0);
	t = totals_of(p);
	assert_int_equal(t.samples, GOLANG_HEAP_MAX_STACKS + 1);
	assert_int_equal(t.inuse_space, (int64_t)MANY * 16 + (int64_t)8 * MANY * (MANY + 1));
	assert_int_equal(golang_heap_stats(f.heap)->folded, 500);
	assert_int_equal(golang_heap_snapshot(f.heap, &snapshot, &err), 0);
	assert_int_equal(profile_n_samples(snapshot), GOLANG_HEAP_MAX_STACKS + 1);
	last = profile_sample_at(p, t.samples - 1);
	assert_int_equal(last->values[3], 500 * 16 + 8 * 500 * 501);
	l = profile_location_at(p, *profile_stack_at(p, last->stack, &n));
	assert_string_equal(profile_cstring(p, profile_function_at(p, l->lines[0].function)->name),
			    "(other)");
	fixture_close(&f);
}

static void deltas_add_up_to_last_minus_first_exactly(void **state)
{
	static struct fixture f;
	struct totals first, last, t;
	int64_t objects = 0, space = 0;

	(void)state;
	program_build(&f.program);
	/* A rate at which every scaled value is rounded. */
	program_u64(&f.program, PROGRAM_RATE, 524288);
	for (size_t i = 0; i < 10; i++)
		program_bucket(&f.program, 48 + 1000 * i, 7 + i, i);
	fixture_open(&f);
	first = read_cumulative(&f);
	(void)read_delta(&f);
	for (uint64_t round = 1; round < 50; round++) {
		for (size_t i = 0; i < 10; i++)
			set_counts(&f, i, 7 + i + round * (i + 1), i + round * (i + 1) / 2);
		t = read_delta(&f);
		objects += t.alloc_objects;
		space += t.alloc_space;
	}
	last = read_cumulative(&f);
	assert_true(space > 0);
	assert_int_equal(objects, last.alloc_objects - first.alloc_objects);
	assert_int_equal(space, last.alloc_space - first.alloc_space);
	fixture_close(&f);
}

static void bucket_that_appears_later_counts_in_full(void **state)
{
	static struct fixture f;
	struct totals t;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 5, 3);
	fixture_open(&f);
	(void)read_delta(&f);
	program_bucket(&f.program, 256, 6, 1);
	t = read_delta(&f);
	assert_int_equal(t.alloc_objects, 6);
	assert_int_equal(t.alloc_space, 6 * 256);
	t = read_delta(&f);
	assert_int_equal(t.alloc_space, 0);
	fixture_close(&f);
}

static void change_of_the_rate_gives_no_false_delta(void **state)
{
	static struct fixture f;
	struct totals t;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 1000, 0);
	fixture_open(&f);
	(void)read_delta(&f);
	/* Scaled by the new rate, the same samples mean 8,000 times as much. */
	program_u64(&f.program, PROGRAM_RATE, 524288);
	set_counts(&f, 0, 1001, 0);
	t = read_delta(&f);
	assert_int_equal(t.alloc_objects, 0);
	assert_int_equal(t.alloc_space, 0);
	set_counts(&f, 0, 1002, 0);
	t = read_delta(&f);
	assert_in_range(t.alloc_space, 524288, 524288 + 64);
	fixture_close(&f);
}

static void counts_that_fall_behind_give_no_negative_delta_and_none_twice(void **state)
{
	static struct fixture f;
	struct totals t;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 10, 0);
	fixture_open(&f);
	(void)read_delta(&f);
	set_counts(&f, 0, 20, 0);
	assert_int_equal(read_delta(&f).alloc_objects, 10);
	set_counts(&f, 0, 15, 0);
	t = read_delta(&f);
	assert_int_equal(t.alloc_objects, 0);
	assert_int_equal(t.alloc_space, 0);
	set_counts(&f, 0, 22, 0);
	assert_int_equal(read_delta(&f).alloc_objects, 2);
	fixture_close(&f);
}

static void what_was_seen_before_the_first_collection_is_not_counted_again(void **state)
{
	static struct fixture f;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 0, 0);
	/* Nothing is published: 4 in one future cycle and 3 in another. */
	program_u64(&f.program, counts_at(0) + 32, 4);
	program_u64(&f.program, counts_at(0) + 48, 3);
	fixture_open(&f);
	(void)read_delta(&f);
	assert_true(golang_heap_stats(f.heap)->before_first_gc);
	/* The first 4 are published. */
	program_u64(&f.program, counts_at(0) + 32, 0);
	set_counts(&f, 0, 4, 0);
	assert_int_equal(read_delta(&f).alloc_objects, 0);
	assert_false(golang_heap_stats(f.heap)->before_first_gc);
	program_u64(&f.program, counts_at(0) + 48, 0);
	set_counts(&f, 0, 9, 0);
	assert_int_equal(read_delta(&f).alloc_objects, 2);
	fixture_close(&f);
}

/* The runtime publishes what is in the first word; what waits in the others has happened, too. */
static void allocations_count_when_they_happen(void **state)
{
	static struct fixture f;
	struct totals t;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 10, 0);
	/* Allocated before the first reading, and not published yet: no change. */
	program_u64(&f.program, counts_at(0) + 32, 6);
	fixture_open(&f);
	assert_int_equal(read_delta(&f).alloc_objects, 0);
	for (uint64_t i = 1; i <= 5; i++) {
		program_u64(&f.program, counts_at(0) + 32, 6 + 3 * i);
		t = read_delta(&f);
		assert_int_equal(t.alloc_objects, 3);
		assert_int_equal(t.alloc_space, 3 * 64);
		/* In use is what the last collection found. */
		assert_int_equal(t.inuse_space, 10 * 64);
	}
	/* A collection ends: they move, and nothing has happened. */
	program_u64(&f.program, counts_at(0) + 32, 0);
	set_counts(&f, 0, 10 + 21, 0);
	assert_int_equal(read_delta(&f).alloc_objects, 0);
	fixture_close(&f);
}

/* Go 1.26 keeps bytes beside counts: when they disagree, the record was read while written. */
static void program_of_126(struct fixture *f, uint64_t size, uint64_t allocs)
{
	program_build(&f->program);
	memcpy(f->program.bytes + PROGRAM_BUILDINFO + 33, "go1.26.3", 8);
	program_bucket(&f->program, size, allocs, 0);
	f->program.buckets_end += 64;
	program_u64(&f->program, counts_at(0) + 16, allocs * size);
}

static void set_torn(struct fixture *f, uint64_t size, uint64_t allocs, bool torn)
{
	set_counts(f, 0, allocs, 0);
	program_u64(&f->program, counts_at(0) + 16, allocs * size - (torn ? size : 0));
}

static void torn_bucket_keeps_its_base_and_its_delta_comes_later(void **state)
{
	static struct fixture f;

	(void)state;
	program_of_126(&f, 64, 10);
	fixture_open(&f);
	(void)read_delta(&f);
	set_torn(&f, 64, 14, true);
	assert_int_equal(read_delta(&f).samples, 0);
	assert_int_equal(golang_heap_stats(f.heap)->torn_records, 1);
	set_torn(&f, 64, 15, false);
	assert_int_equal(read_delta(&f).alloc_objects, 5);
	assert_int_equal(read_delta(&f).alloc_objects, 0);
	fixture_close(&f);
}

static void bucket_that_was_torn_in_the_baseline_does_not_count_in_full(void **state)
{
	static struct fixture f;

	(void)state;
	program_of_126(&f, 64, 10);
	set_torn(&f, 64, 10, true);
	fixture_open(&f);
	(void)read_delta(&f);
	set_torn(&f, 64, 11, false);
	assert_int_equal(read_delta(&f).alloc_objects, 0);
	set_torn(&f, 64, 13, false);
	assert_int_equal(read_delta(&f).alloc_objects, 2);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deltas_name_the_same_functions_as_profiles),
		cmocka_unit_test(stacks_are_looked_up_once),
		cmocka_unit_test(first_delta_is_a_baseline_and_in_use_is_absolute),
		cmocka_unit_test(of_very_many_stacks_the_smallest_become_one),
		cmocka_unit_test(deltas_add_up_to_last_minus_first_exactly),
		cmocka_unit_test(bucket_that_appears_later_counts_in_full),
		cmocka_unit_test(change_of_the_rate_gives_no_false_delta),
		cmocka_unit_test(counts_that_fall_behind_give_no_negative_delta_and_none_twice),
		cmocka_unit_test(torn_bucket_keeps_its_base_and_its_delta_comes_later),
		cmocka_unit_test(bucket_that_was_torn_in_the_baseline_does_not_count_in_full),
		cmocka_unit_test(what_was_seen_before_the_first_collection_is_not_counted_again),
		cmocka_unit_test(allocations_count_when_they_happen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
