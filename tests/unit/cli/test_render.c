/* tests/unit/cli/test_render.c: what the tables say of a small profile, and of a forged one. */
#include "cli/render/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/cmd/cpu_threads.h"
#include "profile/ops.h"

/* A profile with one type, "space" in bytes. Functions are named by their first letter. */
struct fixture {
	struct profile *p;
	uint32_t next_address;
};

static void fixture_release(struct fixture *f)
{
	profile_free(f->p);
}

static struct fixture fixture_new(void)
{
	struct fixture f = {.p = profile_new(), .next_address = 1};

	assert_non_null(f.p);
	assert_int_equal(profile_add_type(f.p, "space", "bytes"), 0);
	return f;
}

static struct profile_line line_of(struct fixture *f, const char *name)
{
	struct profile_function function = {};
	struct profile_line line = {.line = 1};

	assert_int_equal(profile_add_string(f->p, view_str(name), &function.name), 0);
	assert_int_equal(profile_add_function(f->p, &function, &line.function), 0);
	return line;
}

/* names: from the root to the leaf; the leaf is inlined into its caller on demand. */
static void add_sample(struct fixture *f, const char *const *names, size_t n, bool inlined,
		       int64_t value)
{
	uint32_t locations[8];
	uint32_t stack;
	uint32_t depth = 0;

	for (size_t i = n; i-- > 0;) {
		struct profile_line lines[2] = {line_of(f, names[i])};
		uint32_t n_lines = 1;

		if (inlined && i == n - 1 && i > 0)
			lines[n_lines++] = line_of(f, names[--i]);
		assert_int_equal(profile_add_location(f->p, f->next_address++, PROFILE_NO_MAPPING,
						      lines, n_lines, &locations[depth++]),
				 0);
	}
	assert_int_equal(profile_add_stack(f->p, locations, depth, &stack), 0);
	assert_int_equal(profile_add_sample(f->p, stack, &value, NULL, 0), 0);
}

#define ADD(f, inlined, value, ...)                                                                \
	add_sample(f, (const char *const[]){__VA_ARGS__},                                          \
		   ARRAY_SIZE(((const char *const[]){__VA_ARGS__})), inlined, value)

static void top_looks_like_that_of_pprof(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;

	(void)state;
	ADD(&f, false, 3072, "main", "work", "alloc");
	ADD(&f, true, 1024, "main", "small");
	ADD(&f, false, 1, "main", "dust");
	render_init(&r, f.p, 0);
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_string_equal(buf_cstr(&out),
			    "Type: space\n"
			    "Showing nodes accounting for 4kB, 100% of 4kB total\n"
			    "Dropped 1 node (cum <= 0.02kB)\n"
			    "      flat  flat%   sum%        cum   cum%\n"
			    "       3kB 74.98% 74.98%        3kB 74.98%  alloc\n"
			    "       1kB 24.99%   100%        1kB 24.99%  small (inline)\n"
			    "         0     0%   100%        4kB   100%  main\n"
			    "         0     0%   100%        3kB 74.98%  work\n");
}

static void top_says_what_it_leaves_out(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;

	(void)state;
	ADD(&f, false, 4096, "a");
	ADD(&f, false, 2048, "b");
	ADD(&f, false, 1, "c");
	render_init(&r, f.p, 0);
	r.max_nodes = 1;
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "Showing top 1 nodes out of 2\n"));
	assert_non_null(strstr(buf_cstr(&out), "Dropped 1 node"));
	buf_clear(&out);
	r.max_nodes = 0;
	r.all_nodes = true;
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "  c\n"));
	assert_null(strstr(buf_cstr(&out), "Dropped"));
}

static size_t count_lines(struct buf *text)
{
	size_t n = 0;

	for (const char *p = buf_cstr(text); (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

static void a_screen_shows_the_rows_that_fit_and_no_bare_callers(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;
	char name[16];

	(void)state;
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "work%02d", i);
		ADD(&f, false, 4096 + i, "main", "serve", name);
	}
	render_init(&r, f.p, 0);
	r.lines = 24;
	r.columns = 80;
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "  work39\n"));
	assert_null(strstr(buf_cstr(&out), "  main\n"));
	assert_non_null(strstr(buf_cstr(&out), "\n30 more functions, 2 of them with a flat of 0; "
					       "use -n 0 to see all\n"));
	assert_true(count_lines(&out) < r.lines);
	/* A tiny terminal still gets some. */
	buf_clear(&out);
	r.lines = 3;
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "  work35\n"));
	assert_null(strstr(buf_cstr(&out), "  work34\n"));
	buf_clear(&out);
	r.lines = 0;
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "  work00\n"));
	assert_non_null(strstr(buf_cstr(&out), "  serve\n"));
	assert_null(strstr(buf_cstr(&out), " more "));
}

static void a_screen_with_few_leaves_shows_their_callers(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;
	char name[16];

	(void)state;
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "caller%02d", i);
		ADD(&f, false, 4096 + i, name, "byte[]");
	}
	render_init(&r, f.p, 0);
	r.lines = 24;
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "  byte[]\n"));
	assert_non_null(strstr(buf_cstr(&out), "  caller19\n"));
	assert_null(strstr(buf_cstr(&out), "  caller00\n"));
	assert_non_null(strstr(buf_cstr(&out),
			       "\n9 more functions with a flat of 0; use -n 0 to see "
			       "all\n"));
}

static void a_screen_cuts_long_names_and_not_the_layout(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;

	(void)state;
	ADD(&f, true, 4096, "main",
	    "github.com/acme/shop/internal/orders.(*Service).PlaceOrderWithDiscountAndTaxes");
	render_init(&r, f.p, 0);
	r.columns = 80;
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_int_equal(render_tree(&r, &out, &err), 0);
	assert_int_equal(render_change(&r, f.p, f.p, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "github.co\342\200\246"));
	assert_non_null(strstr(buf_cstr(&out), "AndTaxes (inline)\n"));
	for (char *line = strtok((char *)out.data, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= r.columns + 2); /* the ellipsis has three bytes */
}

static void a_change_shows_the_rows_that_fit(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new(), none = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;
	char name[16];

	(void)state;
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "work%02d", i);
		ADD(&f, false, 4096 + i, "main", name);
	}
	render_init(&r, f.p, 0);
	r.lines = 24;
	assert_int_equal(render_change(&r, none.p, f.p, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "  work39\n"));
	assert_null(strstr(buf_cstr(&out), "  main\n"));
	assert_non_null(strstr(buf_cstr(&out),
			       "Omitted 29 functions with smaller changes (use -n 0 "
			       "-a to see all)\n"));
}

static void names_cannot_steer_the_terminal(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;

	(void)state;
	ADD(&f, false, 4096, "evil\033]0;title\a\nsecond line");
	render_init(&r, f.p, 0);
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_int_equal(render_tree(&r, &out, &err), 0);
	assert_null(memchr(out.data, '\033', out.len));
	assert_null(strstr(buf_cstr(&out), "\nsecond"));
}

static void extreme_values_do_not_overflow(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;

	(void)state;
	ADD(&f, false, INT64_MAX, "a", "b");
	ADD(&f, false, INT64_MAX, "a", "c");
	ADD(&f, true, INT64_MIN, "a", "d");
	render_init(&r, f.p, 0);
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_int_equal(render_tree(&r, &out, &err), 0);
	assert_int_equal(render_json(&r, &out, &err), 0);
	assert_int_equal(render_change(&r, f.p, f.p, &out, &err), 0);
}

static void an_empty_profile_gives_an_empty_table(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;

	(void)state;
	render_init(&r, f.p, 0);
	assert_int_equal(render_top(&r, &out, &err), 0);
	assert_non_null(strstr(buf_cstr(&out), "Showing nodes accounting for 0, 0% of 0 total\n"));
	assert_int_equal(render_tree(&r, &out, &err), 0);
	assert_int_equal(render_json(&r, &out, &err), 0);
}

static void the_tree_is_indented_and_says_what_it_cut(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;

	(void)state;
	ADD(&f, false, 3072, "main", "work");
	ADD(&f, false, 1024, "main");
	ADD(&f, false, 2, "main", "dust");
	render_init(&r, f.p, 0);
	assert_int_equal(render_tree(&r, &out, &err), 0);
	assert_string_equal(
		buf_cstr(&out),
		"Type: space\n"
		"     total total%       self\n"
		"       4kB   100%          0  (all)\n"
		"       4kB   100%        1kB   main\n"
		"       3kB 74.96%        3kB    work\n"
		"Omitted 1 branch with 0.049% of the total (use --all-nodes to see all)\n");
}

static void changes_show_before_and_after(void **state)
{
	_cleanup_(fixture_release) struct fixture before = fixture_new();
	_cleanup_(fixture_release) struct fixture after = fixture_new();
	_cleanup_(profile_freep) struct profile *change = NULL;
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	struct render r;

	(void)state;
	ADD(&before, false, 4096, "main", "shrinks");
	ADD(&before, false, 1024, "main", "stays");
	ADD(&after, false, 1024, "main", "shrinks");
	ADD(&after, false, 1024, "main", "stays");
	ADD(&after, false, 2048, "main", "is new");
	assert_int_equal(profile_diff(before.p, after.p, &change, &err), 0);
	render_init(&r, change, 0);
	assert_int_equal(render_change(&r, before.p, after.p, &out, &err), 0);
	assert_string_equal(buf_cstr(&out),
			    "Type: space\n"
			    "Before: 5kB\n"
			    "After: 4kB\n"
			    "Change: -1kB (-20.00%); 2kB grew, 3kB shrank\n"
			    "    before      after     change  share cum change\n"
			    "       4kB        1kB       -3kB 60.00%       -3kB  shrinks\n"
			    "         0        2kB       +2kB 40.00%       +2kB  is new\n"
			    "         0          0          0     0%       -1kB  main\n");
}

static void a_machine_has_no_file_and_losses_are_in_the_json(void **state)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(buf_release) struct buf text = {}, json = {};
	const struct cpu_losses losses = {.samples = 12,
					  .lost_ring = 3,
					  .ends = {[CPU_STACK_ROOT] = 8, [CPU_STACK_NO_RULE] = 1}};
	const struct render_source source = {
		.machine = "node-7", .losses = &losses, .lost_memory = 2};
	struct profile_mapping m = {.end = 1};
	struct err err = {};
	struct render r;
	uint32_t id;

	(void)state;
	ADD(&f, false, 5, "main");
	assert_int_equal(profile_add_string(f.p, view_str("/usr/bin/any"), &m.file), 0);
	assert_int_equal(profile_add_mapping(f.p, &m, &id), 0);
	render_init(&r, f.p, 0);
	r.source = &source;
	assert_int_equal(render_top(&r, &text, &err), 0);
	assert_non_null(strstr(buf_cstr(&text), "Machine: node-7\n"));
	assert_null(strstr(buf_cstr(&text), "any"));
	assert_int_equal(render_json(&r, &json, &err), 0);
	assert_non_null(strstr(buf_cstr(&json), "\"machine\":\"node-7\""));
	assert_non_null(strstr(buf_cstr(&json), "\"samples\":12,\"lost_ring\":3,"));
	assert_non_null(strstr(buf_cstr(&json), "\"lost_memory\":2,"));
	assert_non_null(strstr(buf_cstr(&json), "\"root\":8,"));
	assert_non_null(strstr(buf_cstr(&json), "\"no_unwind_information\":1,"));
}

/* The collapsed stacks of samples "a;b" of thread "t1" and "a" of no thread, with threads. */
static void assert_threads(bool below_process, const char *expected)
{
	_cleanup_(fixture_release) struct fixture f = fixture_new();
	_cleanup_(profile_freep) struct profile *threads = NULL;
	_cleanup_(buf_release) struct buf out = {};
	struct profile_label label = {};
	const int64_t value = 3;
	struct err err = {};

	ADD(&f, false, 5, "a", "b");
	ADD(&f, false, 4, "a");
	assert_int_equal(profile_add_string(f.p, view_str("thread"), &label.key), 0);
	assert_int_equal(profile_add_string(f.p, view_str("t1"), &label.str), 0);
	assert_int_equal(
		profile_add_sample(f.p, profile_sample_at(f.p, 0)->stack, &value, &label, 1), 0);
	assert_int_equal(cmd_cpu_threads_as_frames(f.p, below_process, &threads, &err), 0);
	assert_int_equal(profile_collapse(threads, 0, &out, &err), 0);
	assert_string_equal(buf_cstr(&out), expected);
}

static void threads_become_frames(void **state)
{
	(void)state;
	assert_threads(false, "a 4\na;b 5\nt1;a;b 3\n");
	assert_threads(true, "a 4\na;b 5\na;t1;b 3\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(top_looks_like_that_of_pprof),
		cmocka_unit_test(top_says_what_it_leaves_out),
		cmocka_unit_test(a_screen_shows_the_rows_that_fit_and_no_bare_callers),
		cmocka_unit_test(a_screen_with_few_leaves_shows_their_callers),
		cmocka_unit_test(a_screen_cuts_long_names_and_not_the_layout),
		cmocka_unit_test(a_change_shows_the_rows_that_fit),
		cmocka_unit_test(names_cannot_steer_the_terminal),
		cmocka_unit_test(extreme_values_do_not_overflow),
		cmocka_unit_test(an_empty_profile_gives_an_empty_table),
		cmocka_unit_test(the_tree_is_indented_and_says_what_it_cut),
		cmocka_unit_test(a_machine_has_no_file_and_losses_are_in_the_json),
		cmocka_unit_test(threads_become_frames),
		cmocka_unit_test(changes_show_before_and_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
