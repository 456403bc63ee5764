/* tests/unit/profile/test_tree.c: the table, the tree and the collapsed stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "profile/tree.h"

static uint32_t add_string(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(profile_add_string(p, view_str(s), &id), 0);
	return id;
}

/* A location of functions inlined into each other, innermost first. */
static uint32_t add_inlined(struct profile *p, const char *inner, const char *outer)
{
	const char *names[] = {inner, outer};
	struct profile_line lines[2] = {0};
	uint32_t n = outer ? 2 : 1;
	uint32_t id;

	for (uint32_t i = 0; i < n; i++) {
		struct profile_function f = {.name = add_string(p, names[i])};

		assert_int_equal(profile_add_function(p, &f, &lines[i].function), 0);
	}
	assert_int_equal(profile_add_location(p, 0, PROFILE_NO_MAPPING, lines, n, &id), 0);
	return id;
}

static uint32_t add_frame(struct profile *p, const char *name)
{
	return add_inlined(p, name, NULL);
}

static void add_sample(struct profile *p, const uint32_t *frames, uint32_t n, int64_t value)
{
	uint32_t stack;

	assert_int_equal(profile_add_stack(p, frames, n, &stack), 0);
	assert_int_equal(profile_add_sample(p, stack, &value, NULL, 0), 0);
}

static struct profile *new_profile(void)
{
	struct profile *p = profile_new();

	assert_int_equal(profile_add_type(p, "space", "bytes"), 0);
	return p;
}

/* The table as lines "flat cum name", which is easier to compare than structs. */
static void expect_table(struct profile *p, int64_t total, const char *expected)
{
	_cleanup_(profile_table_release) struct profile_table t = {0};
	_cleanup_(buf_release) struct buf text = {0};
	struct err err = {0};

	assert_int_equal(profile_table_build(p, 0, &t, &err), 0);
	for (size_t i = 0; i < t.len; i++)
		assert_int_equal(buf_printf(&text, "%lld %lld %s\n", (long long)t.rows[i].flat,
					    (long long)t.rows[i].cum,
					    profile_cstring(p, t.rows[i].name)),
				 0);
	assert_string_equal(buf_cstr(&text), expected);
	assert_true(t.total == total);
}

static void expect_collapsed(struct profile *p, const char *expected)
{
	_cleanup_(buf_release) struct buf text = {0};
	struct err err = {0};

	assert_int_equal(profile_collapse(p, 0, &text, &err), 0);
	assert_string_equal(buf_cstr(&text), expected);
}

static void render_node(const struct profile *p, const struct profile_tree *t, uint32_t node,
			int depth, struct buf *text)
{
	const struct profile_node *n = &t->nodes[node];

	assert_int_equal(buf_printf(text, "%*s%s %lld %lld\n", depth, "",
				    profile_cstring(p, n->name), (long long)n->total,
				    (long long)n->self),
			 0);
	for (uint32_t c = n->first_child; c; c = t->nodes[c].sibling)
		render_node(p, t, c, depth + 1, text);
}

static void expect_tree(struct profile *p, const char *expected)
{
	_cleanup_(profile_tree_release) struct profile_tree t = {0};
	_cleanup_(buf_release) struct buf text = {0};
	struct err err = {0};

	assert_int_equal(profile_tree_build(p, 0, &t, &err), 0);
	render_node(p, &t, 0, 0, &text);
	assert_string_equal(buf_cstr(&text), expected);
}

static void a_recursive_function_counts_once_per_sample(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t rec = add_frame(p, "rec");
	uint32_t main_ = add_frame(p, "main");

	(void)state;
	add_sample(p, (uint32_t[]){rec, rec, rec, main_}, 4, 10);
	add_sample(p, (uint32_t[]){rec, main_}, 2, 5);
	expect_table(p, 15, "15 15 rec\n0 15 main\n");
	expect_tree(p, " 15 0\n main 15 0\n  rec 15 5\n   rec 10 0\n    rec 10 10\n");
	expect_collapsed(p, "main;rec 5\nmain;rec;rec;rec 10\n");
}

static void flat_belongs_to_the_innermost_inlined_function_of_the_leaf(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t leaf = add_inlined(p, "inner", "outer");
	uint32_t middle = add_inlined(p, "helper", "caller");

	(void)state;
	add_sample(p, (uint32_t[]){leaf, middle}, 2, 8);
	expect_table(p, 8, "8 8 inner\n0 8 caller\n0 8 helper\n0 8 outer\n");
	expect_collapsed(p, "caller;helper;outer;inner 8\n");
}

static void functions_of_one_name_share_a_row(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t a = add_frame(p, "f");
	uint32_t b = add_frame(p, "f");

	(void)state;
	add_sample(p, &a, 1, 1);
	add_sample(p, &b, 1, 2);
	add_sample(p, (uint32_t[]){a, b}, 2, 4);
	expect_table(p, 7, "7 7 f\n");
}

static void rows_go_by_flat_then_by_name_whatever_their_cum(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t a = add_frame(p, "a"), b = add_frame(p, "b"), c = add_frame(p, "c");
	uint32_t d = add_frame(p, "d");

	(void)state;
	add_sample(p, (uint32_t[]){d, b}, 2, 9);
	add_sample(p, (uint32_t[]){c, a}, 2, 3);
	expect_table(p, 12, "9 9 d\n3 3 c\n0 3 a\n0 9 b\n");
}

static void negative_values_rank_by_size_and_total_is_absolute(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t shrunk = add_frame(p, "shrunk"), grown = add_frame(p, "grown");
	uint32_t main_ = add_frame(p, "main"), moved = add_frame(p, "moved");

	(void)state;
	add_sample(p, (uint32_t[]){shrunk, main_}, 2, -50);
	add_sample(p, (uint32_t[]){grown, main_}, 2, 20);
	add_sample(p, (uint32_t[]){grown, moved, main_}, 3, 15);
	add_sample(p, (uint32_t[]){shrunk, moved, main_}, 3, -15);
	expect_table(p, 100, "-65 -65 shrunk\n35 35 grown\n0 -30 main\n");
	expect_tree(p, " -30 0\n main -30 0\n  shrunk -50 -50\n  grown 20 20\n  moved 0 0\n"
		       "   grown 15 15\n   shrunk -15 -15\n");
	expect_collapsed(p, "main;grown 20\nmain;moved;grown 15\nmain;moved;shrunk -15\n"
			    "main;shrunk -50\n");
}

static void stacks_that_cancel_out_vanish(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t f = add_frame(p, "f");

	(void)state;
	add_sample(p, &f, 1, 7);
	add_sample(p, &f, 1, -7);
	add_sample(p, &f, 1, 0);
	expect_table(p, 14, "");
	expect_collapsed(p, "");
}

static void the_total_is_that_of_the_base_where_samples_are_marked(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t f = add_frame(p, "f");
	struct profile_label base = {.key = add_string(p, "pprof::base"),
				     .str = add_string(p, "true")};
	int64_t value = -40;

	(void)state;
	add_sample(p, &f, 1, 100);
	assert_int_equal(profile_add_sample(p, 0, &value, &base, 1), 0);
	expect_table(p, 40, "60 60 f\n");
}

static void frames_without_a_name_are_named_after_their_file(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	struct profile_mapping libc = {.file = add_string(p, "/usr/lib/libc.so.6")};
	struct profile_mapping none = {.start = 1};
	struct profile_line nameless = {.line = 3};
	struct profile_function f = {.name = 0};
	uint32_t maps[2], frames[4];

	(void)state;
	assert_int_equal(profile_add_mapping(p, &libc, &maps[0]), 0);
	assert_int_equal(profile_add_mapping(p, &none, &maps[1]), 0);
	assert_int_equal(profile_add_function(p, &f, &nameless.function), 0);
	assert_int_equal(profile_add_location(p, 1, maps[0], NULL, 0, &frames[0]), 0);
	assert_int_equal(profile_add_location(p, 2, maps[0], &nameless, 1, &frames[1]), 0);
	assert_int_equal(profile_add_location(p, 3, maps[1], NULL, 0, &frames[2]), 0);
	assert_int_equal(profile_add_location(p, 4, PROFILE_NO_MAPPING, NULL, 0, &frames[3]), 0);
	add_sample(p, frames, 4, 6);
	expect_table(p, 6, "6 6 [libc.so.6]\n0 6 <unknown>\n");
	expect_collapsed(p, "<unknown>;<unknown>;[libc.so.6];[libc.so.6] 6\n");
}

static void samples_without_frames_count_in_the_total_only(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t f = add_frame(p, "f");

	(void)state;
	add_sample(p, NULL, 0, 5);
	add_sample(p, &f, 1, 5);
	expect_table(p, 10, "5 5 f\n");
	expect_tree(p, " 10 5\n f 5 5\n");
	expect_collapsed(p, "f 5\n");
}

static void collapsed_names_hold_no_separators(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t odd = add_frame(p, "a;b\nc\td e");

	(void)state;
	add_sample(p, &odd, 1, 5);
	expect_collapsed(p, "a:b c d e 5\n");
}

static void sums_stop_at_the_ends_of_the_range(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	uint32_t f = add_frame(p, "f");

	(void)state;
	add_sample(p, &f, 1, INT64_MIN);
	add_sample(p, &f, 1, INT64_MIN);
	expect_table(p, INT64_MAX, "-9223372036854775808 -9223372036854775808 f\n");
	expect_collapsed(p, "f -9223372036854775808\n");
}

static void a_type_that_is_not_there_is_refused(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	struct profile_table table;
	struct profile_tree tree;
	struct buf out = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_table_build(p, 1, &table, &err), -EINVAL);
	assert_int_equal(profile_tree_build(p, 1, &tree, &err), -EINVAL);
	assert_int_equal(profile_collapse(p, 1, &out, &err), -EINVAL);
}

static void a_small_profile_that_stands_for_endless_frames_is_too_big(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile();
	enum { N_LINES = 70000, N_FRAMES = 4000 };
	_cleanup_free_ struct profile_line *lines = calloc(N_LINES, sizeof(*lines));
	_cleanup_free_ uint32_t *frames = calloc(N_FRAMES, sizeof(*frames));
	struct profile_function f = {.name = add_string(p, "f")};
	struct profile_table table;
	struct err err = {0};
	uint32_t id;

	(void)state;
	assert_int_equal(profile_add_function(p, &f, &id), 0);
	assert_int_equal(profile_add_location(p, 0, PROFILE_NO_MAPPING, lines, N_LINES, &id), 0);
	add_sample(p, frames, N_FRAMES, 1);
	assert_int_equal(profile_table_build(p, 0, &table, &err), -E2BIG);
	assert_non_null(strstr(err.text, "too many frames"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recursive_function_counts_once_per_sample),
		cmocka_unit_test(flat_belongs_to_the_innermost_inlined_function_of_the_leaf),
		cmocka_unit_test(functions_of_one_name_share_a_row),
		cmocka_unit_test(rows_go_by_flat_then_by_name_whatever_their_cum),
		cmocka_unit_test(negative_values_rank_by_size_and_total_is_absolute),
		cmocka_unit_test(stacks_that_cancel_out_vanish),
		cmocka_unit_test(the_total_is_that_of_the_base_where_samples_are_marked),
		cmocka_unit_test(frames_without_a_name_are_named_after_their_file),
		cmocka_unit_test(samples_without_frames_count_in_the_total_only),
		cmocka_unit_test(collapsed_names_hold_no_separators),
		cmocka_unit_test(sums_stop_at_the_ends_of_the_range),
		cmocka_unit_test(a_type_that_is_not_there_is_refused),
		cmocka_unit_test(a_small_profile_that_stands_for_endless_frames_is_too_big),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
