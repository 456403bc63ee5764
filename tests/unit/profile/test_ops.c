/* tests/unit/profile/test_ops.c: sums and differences of profiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "profile/ops.h"

static uint32_t add_string(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(profile_add_string(p, view_str(s), &id), 0);
	return id;
}

static uint32_t add_mapping(struct profile *p, uint64_t start, const char *file,
			    const char *build_id)
{
	struct profile_mapping m = {.start = start,
				    .end = start + 0x10000,
				    .file = add_string(p, file),
				    .build_id = add_string(p, build_id),
				    .has_functions = true};
	uint32_t id;

	assert_int_equal(profile_add_mapping(p, &m, &id), 0);
	return id;
}

static uint32_t add_location(struct profile *p, uint64_t address, uint32_t mapping,
			     const char *name, int64_t line)
{
	struct profile_function f = {.name = add_string(p, name),
				     .system_name = add_string(p, "sys"),
				     .file = add_string(p, "a.go"),
				     .start_line = 3};
	struct profile_line l = {.line = line, .column = 2};
	uint32_t id;

	assert_int_equal(profile_add_function(p, &f, &l.function), 0);
	assert_int_equal(profile_add_location(p, address, mapping, &l, 1, &id), 0);
	return id;
}

static void add_sample(struct profile *p, const uint32_t *frames, uint32_t n, int64_t objects,
		       int64_t bytes)
{
	int64_t values[] = {objects, bytes};
	uint32_t stack;

	assert_int_equal(profile_add_stack(p, frames, n, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, values, NULL, 0), 0);
}

/* One sample in f, called by main, in a program mapped at base. */
static struct profile *small_profile(uint64_t base, int64_t objects, int64_t bytes)
{
	struct profile *p = profile_new();
	uint32_t m, frames[2];

	assert_int_equal(profile_add_type(p, "inuse_objects", "count"), 0);
	assert_int_equal(profile_add_type(p, "inuse_space", "bytes"), 0);
	m = add_mapping(p, base, "/bin/app", "id1");
	frames[0] = add_location(p, base + 0x10, m, "f", 5);
	frames[1] = add_location(p, base + 0x20, m, "main", 9);
	add_sample(p, frames, 2, objects, bytes);
	profile_header(p)->time_ns = 1000 + (objects & 0xff);
	profile_header(p)->duration_ns = 7;
	profile_header(p)->period = 512;
	return p;
}

static void assert_values(const struct profile *p, size_t i, int64_t objects, int64_t bytes)
{
	assert_true(profile_sample_at(p, i)->values[0] == objects);
	assert_true(profile_sample_at(p, i)->values[1] == bytes);
}

static void a_profile_merged_with_itself_doubles_and_keeps_all_else(void **state)
{
	_cleanup_(profile_freep) struct profile *p = small_profile(0x400000, 2, 64);
	_cleanup_(profile_freep) struct profile *q = NULL;
	struct profile_term twice[] = {{.profile = p, .factor = 1}, {.profile = p, .factor = 1}};
	const struct profile_location *l;
	const struct profile_function *f;
	struct err err = {0};
	uint32_t n;

	(void)state;
	assert_int_equal(profile_add_comment(p, view_str("note")), 0);
	profile_header(p)->default_type = add_string(p, "inuse_space");
	assert_int_equal(profile_merge(twice, 2, &q, &err), 0);
	assert_int_equal(profile_n_samples(q), 1);
	assert_values(q, 0, 4, 128);
	assert_int_equal(profile_n_mappings(q), 1);
	assert_int_equal(profile_n_functions(q), 2);
	assert_int_equal(profile_n_comments(q), 1);
	l = profile_location_at(q, profile_stack_at(q, profile_sample_at(q, 0)->stack, &n)[0]);
	assert_true(l->address == 0x400010 && l->lines[0].line == 5 && l->lines[0].column == 2);
	f = profile_function_at(q, l->lines[0].function);
	assert_string_equal(profile_cstring(q, f->name), "f");
	assert_string_equal(profile_cstring(q, f->system_name), "sys");
	assert_string_equal(profile_cstring(q, f->file), "a.go");
	assert_true(f->start_line == 3);
	assert_string_equal(profile_cstring(q, profile_mapping_at(q, 0)->build_id), "id1");
	assert_string_equal(profile_cstring(q, profile_header(q)->default_type), "inuse_space");
	assert_true(profile_header(q)->duration_ns == 14 && profile_header(q)->period == 512);
}

static void one_program_at_two_addresses_comes_together(void **state)
{
	_cleanup_(profile_freep) struct profile *a = small_profile(0x400000, 1, 10);
	_cleanup_(profile_freep) struct profile *b = small_profile(0x7f0000000000, 2, 20);
	_cleanup_(profile_freep) struct profile *q = NULL;
	struct profile_term terms[] = {{.profile = a, .factor = 1}, {.profile = b, .factor = 1}};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_merge(terms, 2, &q, &err), 0);
	assert_int_equal(profile_n_mappings(q), 1);
	assert_int_equal(profile_n_locations(q), 2);
	assert_int_equal(profile_n_samples(q), 1);
	assert_values(q, 0, 3, 30);
	assert_true(profile_location_at(q, 0)->address == 0x400010);
	assert_true(profile_header(q)->time_ns == 1001);
}

static void mappings_that_disagree_on_symbols_claim_none(void **state)
{
	_cleanup_(profile_freep) struct profile *a = small_profile(0x400000, 1, 10);
	_cleanup_(profile_freep) struct profile *b = small_profile(0x400000, 2, 20);
	_cleanup_(profile_freep) struct profile *q = NULL;
	struct profile_mapping m = *profile_mapping_at(b, 0);
	struct profile_term terms[] = {{.profile = a, .factor = 1}, {.profile = b, .factor = 1}};
	struct err err = {0};

	(void)state;
	m.has_functions = false;
	profile_set_mapping(b, 0, &m);
	assert_int_equal(profile_merge(terms, 2, &q, &err), 0);
	assert_false(profile_mapping_at(q, 0)->has_functions);
}

static void a_difference_keeps_what_changed_only(void **state)
{
	_cleanup_(profile_freep) struct profile *before = small_profile(0x400000, 5, 50);
	_cleanup_(profile_freep) struct profile *after = small_profile(0x400000, 5, 50);
	_cleanup_(profile_freep) struct profile *q = NULL;
	uint32_t gone = add_location(before, 0x400030, 0, "gone", 1);
	uint32_t grown = add_location(after, 0x400040, 0, "grown", 1);
	struct err err = {0};

	(void)state;
	add_sample(before, &gone, 1, 1, 100);
	add_sample(after, &grown, 1, 2, 200);
	assert_int_equal(profile_diff(before, after, &q, &err), 0);
	assert_int_equal(profile_n_samples(q), 2);
	assert_values(q, 0, 2, 200);
	assert_values(q, 1, -1, -100);
	/* f and main vanished with their sample. */
	assert_int_equal(profile_n_functions(q), 2);
	assert_int_equal(profile_n_locations(q), 2);
	assert_true(profile_header(q)->duration_ns == 7);
}

static void a_difference_with_itself_is_empty_but_names_the_program(void **state)
{
	_cleanup_(profile_freep) struct profile *p = small_profile(0x400000, 5, 50);
	_cleanup_(profile_freep) struct profile *q = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_diff(p, p, &q, &err), 0);
	assert_int_equal(profile_n_samples(q), 0);
	assert_int_equal(profile_n_types(q), 2);
	assert_int_equal(profile_n_functions(q), 0);
	assert_int_equal(profile_n_mappings(q), 1);
}

static void a_term_can_leave_types_out(void **state)
{
	_cleanup_(profile_freep) struct profile *before = small_profile(0x400000, 5, 50);
	_cleanup_(profile_freep) struct profile *after = small_profile(0x400000, 8, 80);
	_cleanup_(profile_freep) struct profile *q = NULL;
	struct profile_term terms[] = {{.profile = before, .factor = -1, .without_types = 1U << 1},
				       {.profile = after, .factor = 1}};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_merge(terms, 2, &q, &err), 0);
	assert_int_equal(profile_n_samples(q), 1);
	assert_values(q, 0, 3, 80);
}

static void labels_keep_samples_apart(void **state)
{
	_cleanup_(profile_freep) struct profile *p = small_profile(0x400000, 1, 10);
	_cleanup_(profile_freep) struct profile *q = NULL;
	struct profile_label label = {.key = add_string(p, "bytes"), .num = 16};
	struct profile_term term = {.profile = p, .factor = 3};
	int64_t values[] = {1, 1};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_add_sample(p, 0, values, &label, 1), 0);
	label.num = 32;
	assert_int_equal(profile_add_sample(p, 0, values, &label, 1), 0);
	label.num = 16;
	assert_int_equal(profile_add_sample(p, 0, values, &label, 1), 0);
	assert_int_equal(profile_merge(&term, 1, &q, &err), 0);
	assert_int_equal(profile_n_samples(q), 3);
	assert_values(q, 0, 3, 30);
	assert_values(q, 1, 6, 6);
	assert_values(q, 2, 3, 3);
	assert_true(profile_sample_at(q, 1)->labels[0].num == 16);
}

static void parts_add_up_to_the_whole_and_are_alike(void **state)
{
	enum { PARTS = 7, STACKS = 400 };
	_cleanup_(profile_freep) struct profile *p = small_profile(0x400000, 10, -1000000007);
	int64_t sums[2] = {0}, whole[2] = {0}, largest = 0, smallest = INT64_MAX;
	struct err err = {0};

	(void)state;
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t frame = add_location(p, 0x401000 + i, 0, "f", i);

		/* Too small to be divided: some stacks begin with it, others end. */
		add_sample(p, &frame, 1, 1, 10101010);
	}
	for (size_t i = 0; i < profile_n_samples(p); i++)
		for (int k = 0; k < 2; k++)
			whole[k] += profile_sample_at(p, i)->values[k];
	for (uint32_t part = 0; part < PARTS; part++) {
		const struct profile_term term = {
			.profile = p, .factor = 1, .part = part, .parts = PARTS};
		_cleanup_(profile_freep) struct profile *q = NULL;
		int64_t objects = 0;

		assert_int_equal(profile_merge(&term, 1, &q, &err), 0);
		for (size_t i = 0; i < profile_n_samples(q); i++) {
			objects += profile_sample_at(q, i)->values[0];
			sums[1] += profile_sample_at(q, i)->values[1];
		}
		sums[0] += objects;
		largest = MAX(largest, objects);
		smallest = MIN(smallest, objects);
	}
	assert_int_equal(sums[0], whole[0]);
	assert_int_equal(sums[1], whole[1]);
	/* 58 each on average. */
	assert_true(smallest > 30 && largest < 90);
}

static void different_types_are_refused_by_name(void **state)
{
	_cleanup_(profile_freep) struct profile *a = profile_new();
	_cleanup_(profile_freep) struct profile *b = profile_new();
	struct profile *q = (void *)1;
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_add_type(a, "inuse_space", "bytes"), 0);
	assert_int_equal(profile_diff(a, b, &q, &err), -EINVAL);
	assert_int_equal(profile_add_type(b, "cpu", "nanoseconds"), 0);
	assert_int_equal(profile_diff(a, b, &q, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cpu/nanoseconds"));
	assert_non_null(strstr(err.text, "inuse_space/bytes"));
	assert_int_equal(profile_merge(NULL, 0, &q, &err), -EINVAL);
	assert_ptr_equal(q, (void *)1);
}

static void sums_stop_at_the_ends_of_the_range(void **state)
{
	_cleanup_(profile_freep) struct profile *p = small_profile(0x400000, INT64_MAX, INT64_MIN);
	_cleanup_(profile_freep) struct profile *sum = NULL;
	_cleanup_(profile_freep) struct profile *negative = NULL;
	struct profile_term twice[] = {{.profile = p, .factor = 1}, {.profile = p, .factor = 1}};
	struct profile_term minus = {.profile = p, .factor = -1};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_merge(twice, 2, &sum, &err), 0);
	assert_values(sum, 0, INT64_MAX, INT64_MIN);
	assert_int_equal(profile_merge(&minus, 1, &negative, &err), 0);
	assert_values(negative, 0, -INT64_MAX, INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profile_merged_with_itself_doubles_and_keeps_all_else),
		cmocka_unit_test(one_program_at_two_addresses_comes_together),
		cmocka_unit_test(mappings_that_disagree_on_symbols_claim_none),
		cmocka_unit_test(a_difference_keeps_what_changed_only),
		cmocka_unit_test(a_difference_with_itself_is_empty_but_names_the_program),
		cmocka_unit_test(a_term_can_leave_types_out),
		cmocka_unit_test(labels_keep_samples_apart),
		cmocka_unit_test(parts_add_up_to_the_whole_and_are_alike),
		cmocka_unit_test(different_types_are_refused_by_name),
		cmocka_unit_test(sums_stop_at_the_ends_of_the_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
