/*
 * tests/unit/golang/test_heap_snapshot.c: what fills the heap of a made-up program, also when parts
 * of it are gone.
 */
#include "golang/heap/heap.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test_heap.h"

struct totals {
	int64_t objects;
	int64_t bytes;
	size_t samples;
};

static struct totals picture(struct fixture *f)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct totals t = {};
	struct err err;

	assert_int_equal(golang_heap_snapshot(f->heap, &p, &err), 0);
	golang_heap_trim(f->heap);
	assert_int_equal(profile_find_type(p, "inuse_objects"), 0);
	assert_int_equal(profile_find_type(p, "inuse_space"), 1);
	t.samples = profile_n_samples(p);
	for (size_t i = 0; i < t.samples; i++) {
		t.objects += profile_sample_at(p, i)->values[0];
		t.bytes += profile_sample_at(p, i)->values[1];
	}
	return t;
}

static void read_last(struct fixture *f, int expected)
{
	struct err err;

	assert_int_equal(golang_heap_read_last(f->heap, &err), expected);
}

static void picture_has_what_no_collection_has_seen_yet(void **state)
{
	static struct fixture f;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 5, 3);
	program_u64(&f.program, counts_at(0) + 16, 10);
	program_u64(&f.program, counts_at(0) + 32, 100);
	program_u64(&f.program, counts_at(0) + 40, 7);
	/* All of it was freed again. */
	program_bucket(&f.program, 128, 4, 4);
	fixture_open(&f);
	read_last(&f, 0);
	assert_int_equal(picture(&f).objects, 2 + 10 + 93);
	assert_int_equal(picture(&f).bytes, 64 * (2 + 10 + 93));
	assert_int_equal(picture(&f).samples, 1);
	fixture_close(&f);
}

static void deltas_do_not_notice_pictures(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL, *q = NULL;
	static struct fixture f;
	struct err err;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 5, 3);
	fixture_open(&f);
	assert_int_equal(golang_heap_read(f.heap, &err), 0);
	assert_int_equal(golang_heap_delta_profile(f.heap, &p, &err), 0);
	golang_heap_trim(f.heap);
	program_u64(&f.program, counts_at(0), 9);
	read_last(&f, 0);
	assert_int_equal(picture(&f).objects, 6);
	assert_int_equal(golang_heap_read(f.heap, &err), 0);
	assert_int_equal(golang_heap_delta_profile(f.heap, &q, &err), 0);
	assert_int_equal(profile_n_samples(q), 1);
	assert_int_equal(profile_sample_at(q, 0)->values[0], 4);
	fixture_close(&f);
}

static void what_cannot_be_read_any_more_stays_as_it_was(void **state)
{
	static struct fixture f;
	struct err err;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 5, 3);
	fixture_open(&f);
	assert_int_equal(golang_heap_read(f.heap, &err), 0);
	/* Its memory became something else. */
	program_u64(&f.program, bucket_at(0) + offsetof(struct golang_bucket_header, size),
		    1 << 20);
	program_u64(&f.program, counts_at(0), 1 << 20);
	read_last(&f, -EBADMSG);
	assert_int_equal(picture(&f).objects, 2);
	assert_int_not_equal(golang_heap_read(f.heap, &err), 0);
	assert_int_equal(picture(&f).objects, 2);
	assert_int_equal(golang_heap_stats(f.heap)->rate, 1);
	fixture_close(&f);
}

static void forged_counts_are_no_negative_and_no_endless_memory(void **state)
{
	static struct fixture f;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 3, 5);
	program_bucket(&f.program, 64, UINT64_MAX, 1);
	program_bucket(&f.program, UINT64_MAX, 2, 1);
	program_bucket(&f.program, 32, 2, 1);
	fixture_open(&f);
	read_last(&f, 0);
	assert_int_equal(picture(&f).samples, 1);
	assert_int_equal(picture(&f).bytes, 32);
	fixture_close(&f);
}

static void program_without_buckets_has_an_empty_picture(void **state)
{
	static struct fixture f;

	(void)state;
	program_build(&f.program);
	program_bucket(&f.program, 64, 1, 1);
	fixture_open(&f);
	/* Nothing was ever read. */
	assert_int_equal(picture(&f).samples, 0);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(picture_has_what_no_collection_has_seen_yet),
		cmocka_unit_test(deltas_do_not_notice_pictures),
		cmocka_unit_test(what_cannot_be_read_any_more_stays_as_it_was),
		cmocka_unit_test(forged_counts_are_no_negative_and_no_endless_memory),
		cmocka_unit_test(program_without_buckets_has_an_empty_picture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
