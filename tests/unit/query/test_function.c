/* tests/unit/query/test_function.c: one function: its lines, callers and callees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "query_fake.h"

#include "base/buf.h"
#include "query/query.h"

static const struct store_window window = {.service = "shop",
					   .type = "go_heap:inuse_space:bytes",
					   .from_ns = 5000 * FAKE_SECOND,
					   .to_ns = 6000 * FAKE_SECOND};
static const struct store_window before = {.service = "shop",
					   .type = "go_heap:inuse_space:bytes",
					   .from_ns = FAKE_BEFORE_NS,
					   .to_ns = 2000 * FAKE_SECOND};

static void print_neighbours(struct buf *text, const char *word, const struct query_neighbour *all,
			     size_t n, bool compare)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(buf_printf(text, "%s %s %g", word, all[i].name, all[i].total), 0);
		if (compare)
			assert_int_equal(buf_printf(text, " %g", all[i].before_total), 0);
		assert_int_equal(buf_append_str(text, "\n"), 0);
	}
}

/* "self total" of the function, then of its lines; then the totals of its neighbours. */
static void expect(struct store *store, const struct store_function *function, bool compare,
		   const char *expected)
{
	_cleanup_(query_function_release) struct query_function f = {0};
	_cleanup_(buf_release) struct buf text = {0};
	struct err err = {};

	assert_int_equal(
		query_function(store, &window, compare ? &before : NULL, function, &f, &err), 0);
	assert_int_equal(
		buf_printf(&text, "%s %g %g of %g", f.file, f.self, f.total, f.window_total), 0);
	if (compare)
		assert_int_equal(buf_printf(&text, ", %g %g of %g", f.before_self, f.before_total,
					    f.window_before_total),
				 0);
	assert_int_equal(buf_append_str(&text, "\n"), 0);
	for (size_t i = 0; i < f.n_lines; i++) {
		const struct query_line *l = &f.lines[i];

		assert_int_equal(
			buf_printf(&text, "%s:%d %g %g", l->file, (int)l->line, l->self, l->total),
			0);
		if (compare)
			assert_int_equal(
				buf_printf(&text, ", %g %g", l->before_self, l->before_total), 0);
		assert_int_equal(buf_append_str(&text, "\n"), 0);
	}
	print_neighbours(&text, "from", f.callers, f.n_callers, compare);
	print_neighbours(&text, "to", f.callees, f.n_callees, compare);
	assert_string_equal(buf_cstr(&text), expected);
}

static const struct store_function work = {.name = "work"};

static void lines_have_what_passes_through_them(void **state)
{
	static const struct fake_stack stacks[] = {{"main;work@5;x", 10}, {"main;work@5", 3},
						   {"main;work@9;y", 20}, {"cron;work@9;y", 1},
						   {"main;idle", 50},	  {"work@5", 2}};
	struct store store = {.stacks = {stacks}, .n_stacks = {6}, .collections = {3}};

	(void)state;
	expect(&store, &work, false,
	       "file.go 5 36 of 86\n"
	       "file.go:9 0 21\n"
	       "file.go:5 5 15\n"
	       "from main 33\n"
	       "from cron 1\n"
	       "to y 21\n"
	       "to x 10\n");
}

static void a_recursive_function_and_its_lines_count_once(void **state)
{
	static const struct fake_stack stacks[] = {{"main;work@5;work@5;work@6", 8},
						   {"main;work@5;visit;work@5;x", 4}};
	struct store store = {.stacks = {stacks}, .n_stacks = {2}, .collections = {1}};

	(void)state;
	expect(&store, &work, false,
	       "file.go 8 12 of 12\n"
	       "file.go:5 0 12\n"
	       "file.go:6 8 8\n"
	       "from main 12\n"
	       "to work 8\n"
	       "to visit 4\n");
}

static void two_windows_are_compared_line_by_line(void **state)
{
	static const struct fake_stack after[] = {{"main;work@5;x", 12}, {"main;work@7", 2}};
	static const struct fake_stack earlier[] = {{"main;work@5;x", 6}, {"cron;work@9;y", 40}};
	struct store store = {.stacks = {after, earlier},
			      .n_stacks = {2, 2},
			      .collections = {1, 2},
			      .snapshot = true};

	(void)state;
	/* Each window has its own number of collections. */
	expect(&store, &work, true,
	       "file.go 2 14 of 14, 0 23 of 23\n"
	       "file.go:9 0 0, 0 20\n"
	       "file.go:5 0 12, 0 3\n"
	       "file.go:7 2 2, 0 0\n"
	       "from cron 0 20\n"
	       "from main 14 3\n"
	       "to y 0 20\n"
	       "to x 12 3\n");
}

static void parts_that_a_compiler_split_off_are_the_same_function(void **state)
{
	static const struct fake_stack stacks[] = {{"main;scan.part.0@libz.so.1;x", 10},
						   {"main;scan@libz.so.1", 3},
						   {"scan@libz.so.1;scan.cold@libz.so.1", 1},
						   {"main;scanner@libz.so.1", 50}};
	static const struct store_function scan = {.name = "scan"};
	struct store store = {.stacks = {stacks}, .n_stacks = {4}, .collections = {1}};

	(void)state;
	expect(&store, &scan, false,
	       " 4 14 of 64\n"
	       ":7 4 14\n"
	       "from main 13\n"
	       "to x 10\n"
	       "to scan 1\n");
}

static void a_file_chooses_among_functions_of_the_same_name(void **state)
{
	static const struct fake_stack stacks[] = {{"main;work@5", 3}};
	static const struct store_function here = {.name = "work", .file = "file.go"};
	static const struct store_function elsewhere = {.name = "work", .file = "other.go"};
	struct store store = {.stacks = {stacks}, .n_stacks = {1}, .collections = {1}};

	(void)state;
	expect(&store, &here, false, "file.go 3 3 of 3\nfile.go:5 3 3\nfrom main 3\n");
	expect(&store, &elsewhere, false, " 0 0 of 3\n");
}

static void a_function_that_is_not_there_has_nothing(void **state)
{
	static const struct fake_stack stacks[] = {{"main;idle", 3}};
	struct store store = {.stacks = {stacks}, .n_stacks = {1}, .collections = {1}};
	_cleanup_(query_function_release) struct query_function f = {0};
	struct err err = {};

	(void)state;
	expect(&store, &work, false, " 0 0 of 3\n");
	store.error = -EIO;
	assert_int_equal(query_function(&store, &window, NULL, &work, &f, &err), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_what_passes_through_them),
		cmocka_unit_test(a_recursive_function_and_its_lines_count_once),
		cmocka_unit_test(two_windows_are_compared_line_by_line),
		cmocka_unit_test(parts_that_a_compiler_split_off_are_the_same_function),
		cmocka_unit_test(a_file_chooses_among_functions_of_the_same_name),
		cmocka_unit_test(a_function_that_is_not_there_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
