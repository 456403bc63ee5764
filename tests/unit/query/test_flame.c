/* tests/unit/query/test_flame.c: flame graphs, tables and profiles of one and two windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "query_fake.h"

#include "base/buf.h"
#include "query/tree.h"

static const struct store_window window = {.service = "shop",
					   .type = "go_heap:inuse_space:bytes",
					   .from_ns = 5000 * FAKE_SECOND,
					   .to_ns = 6000 * FAKE_SECOND};
static const struct store_window before = {.service = "shop",
					   .type = "go_heap:inuse_space:bytes",
					   .from_ns = FAKE_BEFORE_NS,
					   .to_ns = 2000 * FAKE_SECOND};

static int flame_of(struct store *store, const struct store_window *other, size_t max_nodes,
		    struct query_flame *ret, struct err *err)
{
	const struct query_flame_request request = {
		.window = &window, .before = other, .max_nodes = max_nodes};

	return query_flame(store, &request, ret, err);
}

/* "name self total before_self before_total" by line, indented by depth. */
static void expect_flame(struct store *store, bool compare, size_t max_nodes, const char *expected)
{
	_cleanup_(query_flame_release) struct query_flame f = {0};
	_cleanup_(buf_release) struct buf text = {0};
	struct err err = {};

	assert_int_equal(flame_of(store, compare ? &before : NULL, max_nodes, &f, &err), 0);
	assert_true(f.n_nodes <= max_nodes);
	for (size_t i = 0; i < f.n_nodes; i++) {
		const struct query_node *n = &f.nodes[i];

		assert_int_equal(buf_printf(&text, "%*s%s %g %g", (int)n->depth, "",
					    f.names[n->name], n->self, n->total),
				 0);
		if (compare)
			assert_int_equal(
				buf_printf(&text, " %g %g", n->before_self, n->before_total), 0);
		assert_int_equal(buf_append_str(&text, "\n"), 0);
	}
	assert_string_equal(buf_cstr(&text), expected);
}

static void flame_orders_children_by_total_then_name(void **state)
{
	static const struct fake_stack stacks[] = {
		{"main;b", 10}, {"main;a;x", 5}, {"main;a", 5}, {"main;c;y", 30}, {"main", 1}};
	struct store store = {.stacks = {stacks}, .n_stacks = {5}, .collections = {3}};

	(void)state;
	/* A delta is not divided by its collections. */
	expect_flame(&store, false, 100,
		     " 0 51\n"
		     " main 1 51\n"
		     "  c 0 30\n"
		     "   y 30 30\n"
		     "  a 5 10\n"
		     "   x 5 5\n"
		     "  b 10 10\n");
}

static void flame_averages_snapshots_by_collections(void **state)
{
	static const struct fake_stack stacks[] = {{"main;a", 10}, {"main;b", 3}};
	struct store store = {
		.stacks = {stacks}, .n_stacks = {2}, .collections = {4}, .snapshot = true};

	(void)state;
	expect_flame(&store, false, 100, " 0 3.25\n main 0 3.25\n  a 2.5 2.5\n  b 0.75 0.75\n");
}

static void flame_compares_two_windows_in_one_tree(void **state)
{
	static const struct fake_stack after[] = {{"main;a", 10}, {"main;new", 4}};
	static const struct fake_stack earlier[] = {{"main;a", 6}, {"main;gone;x", 8}};
	struct store store = {.stacks = {after, earlier},
			      .n_stacks = {2, 2},
			      .collections = {1, 2},
			      .snapshot = true};

	(void)state;
	expect_flame(&store, true, 100,
		     " 0 14 0 7\n"
		     " main 0 14 0 7\n"
		     "  a 10 10 3 3\n"
		     "  new 4 4 0 0\n"
		     "  gone 0 0 0 4\n"
		     "   x 0 0 4 4\n");
}

static void flame_folds_the_smallest_into_other(void **state)
{
	static const struct fake_stack stacks[] = {{"m;a;p", 50}, {"m;a;q", 40}, {"m;b;r", 8},
						   {"m;b;s", 7},  {"m;c", 3},	 {"m;d", 2},
						   {"m;e", 1},	  {"m;f", 1}};
	struct store store = {.stacks = {stacks}, .n_stacks = {8}, .collections = {1}};
	_cleanup_(query_flame_release) struct query_flame f = {0};
	struct err err = {};

	(void)state;
	/* m and a and its two; the root, b with what is below it, and the rest. */
	expect_flame(&store, false, 8,
		     " 0 112\n"
		     " m 0 112\n"
		     "  a 0 90\n"
		     "   p 50 50\n"
		     "   q 40 40\n"
		     "  b 0 15\n"
		     "   (other) 15 15\n"
		     "  (other) 7 7\n");
	assert_int_equal(flame_of(&store, NULL, 8, &f, &err), 0);
	assert_true(f.folded == 22);
	assert_string_equal(f.files[f.nodes[1].name], "file.go");
	assert_string_equal(f.files[0], "");
}

static void flame_has_one_other_where_the_store_has_one_too(void **state)
{
	static const struct fake_stack stacks[] = {{"m;a;p", 50}, {"m;a;q", 40}, {"(other)", 30},
						   {"n;r;s", 9},  {"n;t;u", 8},	 {"o", 1}};
	struct store store = {.stacks = {stacks}, .n_stacks = {6}, .collections = {1}};

	(void)state;
	expect_flame(&store, false, 8,
		     " 0 138\n"
		     " m 0 90\n"
		     "  a 0 90\n"
		     "   p 50 50\n"
		     "   q 40 40\n"
		     " n 0 17\n"
		     "  (other) 17 17\n"
		     " (other) 31 31\n");
}

static void flame_of_an_empty_window_is_a_root(void **state)
{
	struct store store = {0};

	(void)state;
	expect_flame(&store, false, 100, " 0 0\n");
}

static void flame_passes_on_the_stores_sentence(void **state)
{
	struct store store = {.error = -EIO};
	struct query_flame f;
	struct err err = {};

	(void)state;
	assert_int_equal(flame_of(&store, NULL, 100, &f, &err), -EIO);
	assert_string_equal(err.text, "the store does not like this");
	assert_int_equal(flame_of(&store, NULL, 1, &f, &err), -EINVAL);
}

#define RANDOM_STACKS 300
#define RANDOM_FRAMES 64

static char random_text[2][RANDOM_STACKS][RANDOM_FRAMES];
static struct fake_stack random_stacks[2][RANDOM_STACKS];

static int64_t make_random(size_t w, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		size_t depth = 1 + (size_t)(rand() % 12), at = 0;

		for (size_t d = 0; d < depth; d++)
			at += (size_t)snprintf(random_text[w][i] + at, RANDOM_FRAMES - at, "%sf%d",
					       d ? ";" : "", rand() % 4);
		random_stacks[w][i] = (struct fake_stack){random_text[w][i], 1 + rand() % 100000};
		sum += random_stacks[w][i].value;
	}
	return sum;
}

/* Each node is its children and itself, to the last bit; its end is where its subtree ends. */
static void check_sums(const struct query_flame *f)
{
	double folded = 0;

	for (size_t i = 0; i < f->n_nodes; i++) {
		const struct query_node *n = &f->nodes[i];
		double total = n->self, before_total = n->before_self, last = INFINITY;
		size_t c = i + 1;

		while (c < n->end) {
			const struct query_node *child = &f->nodes[c];
			bool is_other = strcmp(f->names[child->name], "(other)") == 0;

			assert_int_equal(child->depth, n->depth + 1);
			total += child->total;
			before_total += child->before_total;
			if (!is_other)
				assert_true(child->total <= last + 1.0 / 32);
			last = child->total;
			folded += is_other ? child->total : 0;
			assert_true(!is_other || child->end == n->end);
			c = child->end;
		}
		assert_true(c == n->end);
		assert_true(total == n->total);
		assert_true(before_total == n->before_total);
	}
	assert_true(folded == f->folded);
}

static void random_flames_conserve_every_sum(void **state)
{
	(void)state;
	srand(3);
	for (int round = 0; round < 60; round++) {
		size_t n[2] = {(size_t)(rand() % RANDOM_STACKS), (size_t)(rand() % RANDOM_STACKS)};
		int64_t sums[2] = {make_random(0, n[0]), make_random(1, n[1])};
		struct store store = {.stacks = {random_stacks[0], random_stacks[1]},
				      .n_stacks = {n[0], n[1]},
				      .snapshot = round % 3 != 0,
				      .collections = {1 + (uint64_t)(rand() % 240), 7}};
		uint64_t divisors[2] = {store.snapshot ? store.collections[0] : 1,
					store.snapshot ? store.collections[1] : 1};
		size_t max_nodes = round % 2 ? 8 + (size_t)(rand() % 200) : 1000000;
		_cleanup_(query_flame_release) struct query_flame f = {0};
		struct err err = {};

		assert_int_equal(flame_of(&store, &before, max_nodes, &f, &err), 0);
		assert_true(f.n_nodes <= max_nodes);
		assert_true(fabs(f.total - (double)sums[0] / (double)divisors[0]) <= 1.0 / 64);
		assert_true(fabs(f.before_total - (double)sums[1] / (double)divisors[1]) <=
			    1.0 / 64);
		check_sums(&f);
		if (max_nodes == 1000000)
			assert_true(f.folded == 0);
	}
}

static void large_flames_conserve_every_sum(void **state)
{
	static char text[20000][160];
	static struct fake_stack stacks[20000];
	struct store store = {.stacks = {stacks}, .n_stacks = {20000}, .collections = {1}};
	_cleanup_(query_flame_release) struct query_flame f = {0};
	struct err err = {};

	(void)state;
	srand(4);
	for (size_t i = 0; i < 20000; i++) {
		size_t at = 0;

		for (int d = 0; d < 20; d++)
			at += (size_t)snprintf(text[i] + at, sizeof(text[i]) - at, "%sf%d",
					       d ? ";" : "", d < 6 ? rand() % 3 : rand() % 500);
		stacks[i] = (struct fake_stack){text[i], 1 + rand() % 1000};
	}
	assert_int_equal(flame_of(&store, NULL, 200000, &f, &err), 0);
	assert_true(f.n_nodes > 190000 && f.n_nodes <= 200000);
	check_sums(&f);
}

static void only_children_take_no_place_in_the_map(void **state)
{
	static const struct fake_stack stacks[] = {
		{"a;b;c;d;e", 1}, {"a;b;c;d;e", 2}, {"a;b;x;y", 4}, {"a;b;z;y", 8}, {"a;b;c", 16}};
	struct store store = {.stacks = {stacks}, .n_stacks = {5}, .collections = {1}};
	_cleanup_(query_sums_release) struct query_sums sums = {0};
	_cleanup_(query_tree_release) struct query_tree tree = {0};
	struct err err = {};

	(void)state;
	assert_int_equal(query_sums_read(&store, &window, NULL, &sums, &err), 0);
	assert_int_equal(query_tree_init(&tree, &err), 0);
	assert_int_equal(query_tree_add(&tree, &sums, NULL, &err), 0);
	assert_int_equal(tree.len, 10);
	/* c, x and z below b. */
	assert_int_equal(tree.children.len, 3);
	assert_int_equal(tree.nodes[0].total[0], 31);
}

static void averages_are_rounded_to_the_nearest_64th(void **state)
{
	(void)state;
	assert_true(query_value(7, 1) == 7);
	assert_true(query_value(1, 2) == 0.5);
	assert_true(query_value(1, 3) == 21.0 / 64);
	assert_true(query_value(-1, 3) == -21.0 / 64);
	assert_true(query_value(2, 3) == 43.0 / 64);
	assert_true(query_value(1, 128) == 1.0 / 64);
	assert_true(query_value(-1, 128) == -1.0 / 64);
	assert_true(query_value(1, 129) == 0);
	assert_true(query_value(INT64_MAX, 2) == (double)INT64_MAX / 2);
	assert_true(query_value(INT64_MIN, 4) == (double)INT64_MIN / 4);
	assert_true(query_value(1, UINT64_MAX) == 0);
}

static const struct query_origin *origin_of(const struct query_flame *f, const char *name)
{
	for (size_t i = 0; i < f->n_names; i++)
		if (strcmp(f->names[i], name) == 0)
			return &f->origins[f->origin[i]];
	fail_msg("no %s", name);
	return NULL;
}

static void what_compilers_append_makes_no_function(void **state)
{
	static const struct fake_stack stacks[] = {{"main.cold;scan.part.0@libz.so.1", 1},
						   {"main.cold;scan.cold@libz.so.1", 2},
						   {"main.cold;scan@libz.so.1", 4},
						   {"main.cold;func1.2", 8}};
	struct store store = {.stacks = {stacks}, .n_stacks = {4}, .collections = {1}};
	_cleanup_(query_top_release) struct query_top t = {0};
	struct err err = {};

	(void)state;
	/* Go's names are its own, whatever they look like. */
	expect_flame(&store, false, 100, " 0 15\n main.cold 0 15\n  func1.2 8 8\n  scan 7 7\n");
	assert_int_equal(query_top(&store, &window, NULL, &t, &err), 0);
	assert_int_equal(t.len, 3);
	assert_string_equal(t.rows[1].name, "scan");
	assert_true(t.rows[1].self == 7 && t.rows[1].total == 7);
	assert_string_equal(t.rows[0].variants, "");
	assert_memory_equal(t.rows[1].variants, ".part.0\0.cold\0", sizeof(".part.0\0.cold\0"));
}

static void a_name_tells_its_suffixes_once_and_not_too_many(void **state)
{
	static struct fake_stack stacks[2 * QUERY_VARIANTS_MAX + 4];
	static char texts[ARRAY_SIZE(stacks)][64];
	struct store store = {.stacks = {stacks, stacks},
			      .n_stacks = {ARRAY_SIZE(stacks), 2},
			      .collections = {1, 1}};
	_cleanup_(query_flame_release) struct query_flame f = {0};
	size_t n = 0;
	struct err err = {};

	(void)state;
	/* Each twice, in functions of their own; both windows have the first. */
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "main;scan.llvm.%zu@libz.so.1", i / 2);
		stacks[i] = (struct fake_stack){texts[i], 1};
	}
	assert_int_equal(flame_of(&store, &before, 100, &f, &err), 0);
	assert_int_equal(f.n_names, 4); /* the root, (other) */
	for (size_t i = 0; i < f.n_names; i++) {
		if (strcmp(f.names[i], "scan") != 0) {
			assert_string_equal(f.variants[i], "");
			continue;
		}
		assert_string_equal(f.variants[i], ".llvm.0");
		for (const char *v = f.variants[i]; *v; v += strlen(v) + 1)
			n++;
	}
	assert_int_equal(n, QUERY_VARIANTS_MAX);
}

static void flames_say_where_functions_come_from(void **state)
{
	static const struct fake_stack stacks[] = {
		{"main.work;inflate@libz.so.1;vfs_read@[kernel.kallsyms]", 1},
		{"main.work;_PyEval_Vector@python3.11;[no unwind information]@", 1}};
	struct store store = {.stacks = {stacks}, .n_stacks = {2}, .collections = {1}};
	_cleanup_(query_flame_release) struct query_flame f = {0};
	struct err err = {};

	(void)state;
	assert_int_equal(flame_of(&store, NULL, 100, &f, &err), 0);
	assert_int_equal(origin_of(&f, "")->kind, QUERY_KIND_OTHER);
	assert_int_equal(origin_of(&f, "main.work")->kind, QUERY_KIND_GO);
	assert_string_equal(origin_of(&f, "main.work")->module, "main");
	assert_int_equal(origin_of(&f, "inflate")->kind, QUERY_KIND_NATIVE);
	assert_string_equal(origin_of(&f, "inflate")->module, "libz.so.1");
	assert_int_equal(origin_of(&f, "vfs_read")->kind, QUERY_KIND_KERNEL);
	assert_int_equal(origin_of(&f, "_PyEval_Vector")->kind, QUERY_KIND_RUNTIME);
	assert_int_equal(origin_of(&f, "[no unwind information]")->kind, QUERY_KIND_OTHER);
}

/* Each value is what a query for it alone gives; what has no label is the rest. */
static void groups_are_the_sums_of_their_values(void **state)
{
	static const struct fake_stack after[] = {
		{"1|main;a", 10}, {"2|main;a", 20}, {"1|main;b", 5}, {"main;b", 3}};
	static const struct fake_stack earlier[] = {{"2|main;a", 7}, {"3|main;c", 2}};
	struct store store = {
		.stacks = {after, earlier}, .n_stacks = {4, 2}, .collections = {1, 1}};
	const struct query_flame_request request = {
		.window = &window, .before = &before, .group = "pid", .max_nodes = 100};
	_cleanup_(query_flame_release) struct query_flame f = {0};
	_cleanup_(buf_release) struct buf text = {0};
	struct err err = {};

	(void)state;
	assert_int_equal(query_flame(&store, &request, &f, &err), 0);
	for (size_t i = 0; i < f.n_nodes; i++)
		assert_int_equal(buf_printf(&text, "%*s%s %g %g\n", (int)f.nodes[i].depth, "",
					    f.names[f.nodes[i].name], f.nodes[i].total,
					    f.nodes[i].before_total),
				 0);
	assert_string_equal(buf_cstr(&text), " 38 9\n"
					     " pid=2 20 7\n"
					     "  main 20 7\n"
					     "   a 20 7\n"
					     " pid=1 15 0\n"
					     "  main 15 0\n"
					     "   a 10 0\n"
					     "   b 5 0\n"
					     " pid=(other) 3 0\n"
					     "  main 3 0\n"
					     "   b 3 0\n"
					     " pid=3 0 2\n"
					     "  main 0 2\n"
					     "   c 0 2\n");
	assert_int_equal(origin_of(&f, "pid=1")->kind, QUERY_KIND_GROUP);
}

static void groups_past_the_limit_are_the_rest(void **state)
{
	static char text[QUERY_MAX_GROUPS + 10][16];
	static struct fake_stack stacks[QUERY_MAX_GROUPS + 10];
	struct store store = {
		.stacks = {stacks}, .n_stacks = {QUERY_MAX_GROUPS + 10}, .collections = {1}};
	const struct query_flame_request request = {
		.window = &window, .group = "pid", .max_nodes = 1000};
	_cleanup_(query_flame_release) struct query_flame f = {0};
	size_t groups = 0;
	struct err err = {};

	(void)state;
	for (int i = 0; i < QUERY_MAX_GROUPS + 10; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "%d|main;work", i);
		stacks[i] = (struct fake_stack){text[i], i + 1};
	}
	assert_int_equal(query_flame(&store, &request, &f, &err), 0);
	for (size_t i = 0; i < f.n_nodes; i++) {
		groups += f.nodes[i].depth == 1;
		/* The ten smallest: 1 to 10. */
		if (strcmp(f.names[f.nodes[i].name], "pid=(other)") == 0)
			assert_true(f.nodes[i].total == 55);
	}
	assert_int_equal(groups, QUERY_MAX_GROUPS + 1);
	assert_true(f.total == 60 * 61 / 2);
}

static const struct query_row *find_row(const struct query_top *t, const char *name)
{
	for (size_t i = 0; i < t->len; i++)
		if (strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
	return NULL;
}

static void top_counts_recursion_once(void **state)
{
	static const struct fake_stack stacks[] = {{"main;f;f;f", 10}, {"main;f;g", 6}};
	struct store store = {.stacks = {stacks}, .n_stacks = {2}, .collections = {1}};
	_cleanup_(query_top_release) struct query_top t = {0};
	struct err err = {};

	(void)state;
	assert_int_equal(query_top(&store, &window, NULL, &t, &err), 0);
	assert_int_equal(t.len, 3);
	assert_true(t.total == 16);
	assert_string_equal(t.rows[0].name, "f");
	assert_string_equal(t.rows[0].file, "file.go");
	assert_true(t.rows[0].self == 10 && t.rows[0].total == 16);
	assert_true(find_row(&t, "g")->self == 6 && find_row(&t, "main")->total == 16);
	assert_string_equal(t.about.unit, "bytes");
}

static void top_of_two_windows_is_sorted_by_change(void **state)
{
	static const struct fake_stack after[] = {{"m;big", 100}, {"m;grown", 50}, {"m;new", 7}};
	static const struct fake_stack earlier[] = {
		{"m;big", 200}, {"m;grown", 10}, {"m;gone", 60}};
	struct store store = {.stacks = {after, earlier},
			      .n_stacks = {3, 3},
			      .collections = {1, 2},
			      .snapshot = true};
	_cleanup_(query_top_release) struct query_top t = {0};
	struct err err = {};

	(void)state;
	assert_int_equal(query_top(&store, &window, &before, &t, &err), 0);
	assert_int_equal(t.len, 5);
	assert_true(t.total == 157 && t.before_total == 135);
	assert_string_equal(t.rows[0].name, "grown");
	assert_true(t.rows[0].before_self == 5);
	assert_string_equal(t.rows[1].name, "gone");
	assert_true(t.rows[1].self == 0 && t.rows[1].before_self == 30);
	assert_string_equal(t.rows[2].name, "new");
	/* Nothing of m itself; its total changed. */
	assert_string_equal(t.rows[3].name, "m");
	assert_string_equal(t.rows[4].name, "big");
}

static void profile_averages_keep_the_average_of_the_total(void **state)
{
	struct store store = {.stacks = {random_stacks[0]},
			      .n_stacks = {200},
			      .collections = {7},
			      .snapshot = true};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct store_sum about = {0};
	struct err err = {};
	int64_t sum = make_random(0, 200), got = 0;

	(void)state;
	assert_int_equal(query_profile(&store, &window, &p, &about, &err), 0);
	for (size_t i = 0; i < profile_n_samples(p); i++)
		got += profile_sample_at(p, i)->values[0];
	assert_true(llabs(got - sum / 7) <= 1);
	assert_int_equal(about.collections, 7);
	assert_null(about.profile);
	assert_int_equal(profile_header(p)->time_ns, window.from_ns);
	assert_int_equal(profile_header(p)->duration_ns, 1000 * FAKE_SECOND);
	assert_string_equal(profile_cstring(p, profile_function_at(p, 0)->file), "file.go");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flame_orders_children_by_total_then_name),
		cmocka_unit_test(flame_averages_snapshots_by_collections),
		cmocka_unit_test(flame_compares_two_windows_in_one_tree),
		cmocka_unit_test(flame_folds_the_smallest_into_other),
		cmocka_unit_test(flame_has_one_other_where_the_store_has_one_too),
		cmocka_unit_test(flame_of_an_empty_window_is_a_root),
		cmocka_unit_test(flame_passes_on_the_stores_sentence),
		cmocka_unit_test(random_flames_conserve_every_sum),
		cmocka_unit_test(large_flames_conserve_every_sum),
		cmocka_unit_test(only_children_take_no_place_in_the_map),
		cmocka_unit_test(averages_are_rounded_to_the_nearest_64th),
		cmocka_unit_test(what_compilers_append_makes_no_function),
		cmocka_unit_test(a_name_tells_its_suffixes_once_and_not_too_many),
		cmocka_unit_test(flames_say_where_functions_come_from),
		cmocka_unit_test(groups_are_the_sums_of_their_values),
		cmocka_unit_test(groups_past_the_limit_are_the_rest),
		cmocka_unit_test(top_counts_recursion_once),
		cmocka_unit_test(top_of_two_windows_is_sorted_by_change),
		cmocka_unit_test(profile_averages_keep_the_average_of_the_total),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
