/* tests/unit/profile/test_profile.c: the model keeps what it is given, and its limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "profile/profile.h"

static uint32_t add_string(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(profile_add_string(p, view_str(s), &id), 0);
	return id;
}

static uint32_t add_function(struct profile *p, const char *name)
{
	struct profile_function f = {.name = add_string(p, name)};
	uint32_t id;

	assert_int_equal(profile_add_function(p, &f, &id), 0);
	return id;
}

static uint32_t add_location(struct profile *p, uint64_t address, uint32_t function)
{
	struct profile_line line = {.function = function, .line = 7};
	uint32_t id;

	assert_int_equal(profile_add_location(p, address, PROFILE_NO_MAPPING, &line, 1, &id), 0);
	return id;
}

static void string_zero_is_empty_and_equal_strings_share_an_id(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();

	(void)state;
	assert_int_equal(add_string(p, ""), 0);
	assert_int_equal(add_string(p, "main.main"), 1);
	assert_int_equal(add_string(p, "other"), 2);
	assert_int_equal(add_string(p, "main.main"), 1);
	assert_string_equal(profile_cstring(p, 1), "main.main");
	assert_string_equal(profile_cstring(p, 99), "");
	assert_int_equal(profile_n_strings(p), 3);
}

static void strings_may_hold_nul_bytes(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	uint32_t a, b;

	(void)state;
	assert_int_equal(profile_add_string(p, view_of("a\0b", 3), &a), 0);
	assert_int_equal(profile_add_string(p, view_of("a\0c", 3), &b), 0);
	assert_int_not_equal(a, b);
	assert_int_equal(profile_string(p, a).len, 3);
}

static void equal_stacks_share_an_id_and_samples_stay_apart(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	uint32_t f = add_function(p, "f");
	uint32_t locations[] = {add_location(p, 1, f), add_location(p, 2, f)};
	uint32_t swapped[] = {locations[1], locations[0]};
	uint32_t a, b, c, len;
	int64_t one = 1;

	(void)state;
	assert_int_equal(profile_add_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_stack(p, locations, 2, &a), 0);
	assert_int_equal(profile_add_stack(p, swapped, 2, &b), 0);
	assert_int_equal(profile_add_stack(p, locations, 2, &c), 0);
	assert_int_equal(a, c);
	assert_int_not_equal(a, b);
	assert_int_equal(profile_n_stacks(p), 2);
	assert_int_equal(profile_stack_at(p, b, &len)[0], locations[1]);
	assert_int_equal(len, 2);
	assert_int_equal(profile_add_sample(p, a, &one, NULL, 0), 0);
	assert_int_equal(profile_add_sample(p, a, &one, NULL, 0), 0);
	assert_int_equal(profile_n_samples(p), 2);
}

/* The hash of the stack of these locations, leaf first. */
static uint64_t hash_of(struct profile *p, const uint32_t *locations, uint32_t n)
{
	uint32_t stack;

	assert_int_equal(profile_add_stack(p, locations, n, &stack), 0);
	return profile_stack_hash(p, stack);
}

static void appended_stacks_are_found_by_who_adds_equal_ones(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	uint32_t ids[3], stack, n;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		ids[i] = add_location(p, i, add_function(p, "main.f"));
	/* So many that blocks and the index grow in between. */
	for (uint32_t i = 0; i < 1000; i++) {
		const uint32_t path[] = {ids[i % 3], ids[i / 3 % 3], add_location(p, i, 0)};

		assert_int_equal(profile_append_stack(p, path, 3, i + 1, &stack), 0);
		assert_int_equal(stack, i);
	}
	for (uint32_t i = 0; i < 1000; i++) {
		const uint32_t path[] = {ids[i % 3], ids[i / 3 % 3], ids[2] + 1 + i};

		assert_int_equal(profile_add_stack(p, path, 3, &stack), 0);
		assert_int_equal(stack, i);
		assert_int_equal(profile_stack_hash(p, i), i + 1);
		assert_memory_equal(profile_stack_at(p, i, &n), path, sizeof(path));
	}
	assert_int_equal(profile_add_stack(p, ids, 3, &stack), 0);
	assert_int_equal(stack, 1000);
	ids[0] = 5000;
	assert_int_equal(profile_append_stack(p, ids, 3, 1, &stack), -EINVAL);
}

static void many_samples_are_added_at_once_or_none(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	const int64_t values[] = {1, 2, 3, 4, 5, 6};
	const uint32_t stacks[] = {0, 0, 0}, wrong[] = {0, 1};
	uint32_t location = add_location(p, 1, add_function(p, "main.f")), stack;

	(void)state;
	assert_int_equal(profile_add_stack(p, &location, 1, &stack), 0);
	assert_int_equal(profile_add_samples(p, stacks, values, 3), -EINVAL);
	assert_int_equal(profile_add_type(p, "a", "count"), 0);
	assert_int_equal(profile_add_type(p, "b", "count"), 0);
	assert_int_equal(profile_add_samples(p, wrong, values, 2), -EINVAL);
	assert_int_equal(profile_add_samples(p, stacks, values, 0), 0);
	assert_int_equal(profile_n_samples(p), 0);
	assert_int_equal(profile_add_samples(p, stacks, values, 3), 0);
	assert_int_equal(profile_n_samples(p), 3);
	for (size_t i = 0; i < 3; i++)
		assert_memory_equal(profile_sample_at(p, i)->values, &values[2 * i],
				    2 * sizeof(*values));
}

static void equal_frames_have_equal_hashes_in_all_profiles(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	_cleanup_(profile_freep) struct profile *q = profile_new();
	uint32_t in_p[4], in_q[2], swapped[4];
	struct profile_line lines[3] = {{.line = 7}, {.line = 7}, {.line = 7}};
	uint64_t hash;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		in_p[i] = add_location(p, i, add_function(p, (char[2]){(char)('a' + i)}));
	/* Other ids, and three frames in one location. */
	in_q[1] = add_location(q, 99, add_function(q, "d"));
	for (uint32_t i = 3; i-- > 0;)
		lines[i].function = add_function(q, (char[2]){(char)('a' + i)});
	assert_int_equal(profile_add_location(q, 1, PROFILE_NO_MAPPING, lines, 3, &in_q[0]), 0);
	hash = hash_of(p, in_p, 4);
	assert_int_not_equal(hash, 0);
	assert_true(hash_of(q, in_q, 2) == hash);
	assert_true(hash_of(p, in_p, 4) == hash);
	assert_true(hash_of(p, in_p, 3) != hash);
	memcpy(swapped, in_p, sizeof(swapped));
	swapped[1] = in_p[2];
	swapped[2] = in_p[1];
	assert_true(hash_of(p, swapped, 4) != hash);
}

static void a_stack_with_a_nameless_frame_has_no_hash(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	uint32_t locations[3];

	(void)state;
	locations[0] = add_location(p, 1, add_function(p, "main.main"));
	locations[1] = add_location(p, 2, add_function(p, ""));
	assert_int_equal(profile_add_location(p, 3, PROFILE_NO_MAPPING, NULL, 0, &locations[2]), 0);
	assert_int_not_equal(hash_of(p, locations, 1), 0);
	assert_int_equal(hash_of(p, locations, 2), 0);
	assert_int_equal(hash_of(p, locations, 3), 0);
	assert_int_equal(hash_of(p, &locations[2], 1), 0);
}

static void the_empty_stack_is_a_stack(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	uint32_t stack, len = 9;
	int64_t one = 1;

	(void)state;
	assert_int_equal(profile_add_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_stack(p, NULL, 0, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, &one, NULL, 0), 0);
	(void)profile_stack_at(p, stack, &len);
	assert_int_equal(len, 0);
}

static void labels_that_differ_in_padding_only_are_shared(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	struct profile_label a, b;
	uint32_t key, stack;
	int64_t one = 1;

	(void)state;
	assert_int_equal(profile_add_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_stack(p, NULL, 0, &stack), 0);
	key = add_string(p, "bytes");
	memset(&a, 0x00, sizeof(a));
	memset(&b, 0xff, sizeof(b));
	a.key = b.key = key;
	a.str = b.str = 0;
	a.num = b.num = 512;
	a.num_unit = b.num_unit = 0;
	assert_int_equal(profile_add_sample(p, stack, &one, &a, 1), 0);
	assert_int_equal(profile_add_sample(p, stack, &one, &b, 1), 0);
	assert_ptr_equal(profile_sample_at(p, 0)->labels, profile_sample_at(p, 1)->labels);
	assert_int_equal(profile_sample_at(p, 1)->labels[0].num, 512);
}

static void ids_out_of_range_are_refused(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	struct profile_function f = {.file = 5};
	struct profile_mapping m = {.build_id = 5};
	struct profile_line line = {.function = 0};
	struct profile_label label = {.num_unit = 5};
	uint32_t id = 42, zero = 0, stack;
	int64_t one = 1;

	(void)state;
	assert_int_equal(profile_add_function(p, &f, &id), -EINVAL);
	assert_int_equal(profile_add_mapping(p, &m, &id), -EINVAL);
	assert_int_equal(profile_add_location(p, 1, 0, NULL, 0, &id), -EINVAL);
	assert_int_equal(profile_add_location(p, 1, PROFILE_NO_MAPPING, &line, 1, &id), -EINVAL);
	assert_int_equal(profile_add_stack(p, &zero, 1, &id), -EINVAL);
	assert_int_equal(id, 42);
	assert_int_equal(profile_add_stack(p, NULL, 0, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, &one, NULL, 0), -EINVAL);
	assert_int_equal(profile_add_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_sample(p, stack + 1, &one, NULL, 0), -EINVAL);
	assert_int_equal(profile_add_sample(p, stack, &one, &label, 1), -EINVAL);
	assert_int_equal(profile_n_samples(p), 0);
}

static void types_are_limited_and_come_before_samples(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	int64_t values[PROFILE_MAX_TYPES] = {0};
	uint32_t stack;

	(void)state;
	for (int i = 0; i < PROFILE_MAX_TYPES - 1; i++)
		assert_int_equal(profile_add_type(p, "t", "count"), 0);
	assert_int_equal(profile_add_type(p, "last", "bytes"), 0);
	assert_int_equal(profile_add_type(p, "more", "bytes"), -E2BIG);
	assert_int_equal(profile_find_type(p, "last"), PROFILE_MAX_TYPES - 1);
	assert_int_equal(profile_find_type(p, "las"), -ENOENT);
	assert_int_equal(profile_add_stack(p, NULL, 0, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, values, NULL, 0), 0);
	assert_int_equal(profile_add_type(p, "late", "count"), -EINVAL);
}

static void the_memory_limit_holds_and_leaves_the_profile_readable(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	const size_t limit = (size_t)1 << 20;
	uint32_t f, n = 0;
	int r = 0;

	(void)state;
	profile_limit(p, limit);
	f = add_function(p, "f");
	assert_int_equal(profile_add_type(p, "samples", "count"), 0);
	while (r == 0 && n < 1000000) {
		struct profile_line line = {.function = f, .line = n};
		uint32_t location, stack;
		int64_t one = 1;

		r = profile_add_location(p, n, PROFILE_NO_MAPPING, &line, 1, &location);
		if (r == 0)
			r = profile_add_stack(p, &location, 1, &stack);
		if (r == 0)
			r = profile_add_sample(p, stack, &one, NULL, 0);
		if (r == 0)
			n++;
	}
	assert_int_equal(r, -E2BIG);
	assert_true(n > 1000);
	/* An arena takes its memory in blocks of up to a quarter megabyte. */
	assert_true(profile_memory(p) <= limit + ((size_t)512 << 10));
	assert_int_equal(profile_n_samples(p), n);
	assert_string_equal(profile_cstring(p, profile_function_at(p, f)->name), "f");
}

static void a_heap_profile_of_eight_thousand_samples_is_small(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	uint64_t random = 1;
	uint32_t f, key;

	(void)state;
	f = add_function(p, "f");
	key = add_string(p, "bytes");
	for (int i = 0; i < 4; i++)
		assert_int_equal(profile_add_type(p, "type", "bytes"), 0);
	for (uint32_t i = 0; i < 5000; i++)
		(void)add_location(p, i, f);
	for (int i = 0; i < 8000; i++) {
		struct profile_label label = {.key = key, .num = 16 * (i % 64)};
		int64_t values[4] = {i, i * 16, i, i};
		uint32_t frames[20], stack;

		for (int k = 0; k < 20; k++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			frames[k] = (uint32_t)(random >> 33) % 5000;
		}
		assert_int_equal(profile_add_stack(p, frames, 20, &stack), 0);
		assert_int_equal(profile_add_sample(p, stack, values, &label, 1), 0);
	}
	assert_true(profile_memory(p) < 2500000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(string_zero_is_empty_and_equal_strings_share_an_id),
		cmocka_unit_test(strings_may_hold_nul_bytes),
		cmocka_unit_test(equal_stacks_share_an_id_and_samples_stay_apart),
		cmocka_unit_test(appended_stacks_are_found_by_who_adds_equal_ones),
		cmocka_unit_test(many_samples_are_added_at_once_or_none),
		cmocka_unit_test(equal_frames_have_equal_hashes_in_all_profiles),
		cmocka_unit_test(a_stack_with_a_nameless_frame_has_no_hash),
		cmocka_unit_test(the_empty_stack_is_a_stack),
		cmocka_unit_test(labels_that_differ_in_padding_only_are_shared),
		cmocka_unit_test(ids_out_of_range_are_refused),
		cmocka_unit_test(types_are_limited_and_come_before_samples),
		cmocka_unit_test(the_memory_limit_holds_and_leaves_the_profile_readable),
		cmocka_unit_test(a_heap_profile_of_eight_thousand_samples_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
