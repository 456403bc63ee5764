/* tests/unit/cli/test_query_type.c: which stored type a word means, and which words mean several.
 */
#include "cli/cmd/query_type.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* Sorted, as store_streams() gives them. */
static const struct store_stream go_service[] = {
	{.type = "cpu:cpu:nanoseconds"},
	{.type = "cpu:samples:count"},
	{.type = "go_block:contentions:count"},
	{.type = "go_block:delay:nanoseconds"},
	{.type = "go_goroutine:goroutine:count"},
	{.type = "go_goroutine:waiting:count"},
	{.type = "go_heap:alloc_objects:count"},
	{.type = "go_heap:alloc_space:bytes"},
	{.type = "go_heap:inuse_objects:count"},
	{.type = "go_heap:inuse_space:bytes"},
	{.type = "go_mutex:contentions:count"},
	{.type = "go_mutex:delay:nanoseconds"},
	{.type = "go_oom:inuse_space:bytes"},
	{.type = "go_runtime:alloc:bytes"},
	{.type = "go_runtime:goroutines:count"},
	{.type = "ingested:weight:grams"},
	{.type = "odd"},
};
static const struct store_stream java_service[] = {
	{.type = "cpu:cpu:nanoseconds"},	  {.type = "cpu:samples:count"},
	{.type = "java_alloc:alloc_space:bytes"}, {.type = "java_cpu:cpu:nanoseconds"},
	{.type = "java_cpu:samples:count"},	  {.type = "java_lock:contentions:count"},
	{.type = "java_lock:delay:nanoseconds"},  {.type = "offcpu:time:nanoseconds"},
	{.type = "offcpu:waits:count"},
};

#define MEANS(service, word, type) assert_means(service, ARRAY_SIZE(service), word, type)
#define REFUSED(service, word, ...)                                                                \
	assert_refused(service, ARRAY_SIZE(service), word, (const char *const[]){__VA_ARGS__, NULL})

static void assert_means(const struct store_stream *streams, size_t n, const char *word,
			 const char *type)
{
	const struct store_stream *picked = NULL;
	struct err err = {};

	if (cmd_query_type_pick(streams, n, word, &picked, &err) < 0)
		fail_msg("%s: %s", word, err.text);
	assert_string_equal(picked->type, type);
}

static void assert_refused(const struct store_stream *streams, size_t n, const char *word,
			   const char *const *says)
{
	const struct store_stream *picked = NULL;
	struct err err = {};

	assert_int_equal(cmd_query_type_pick(streams, n, word, &picked, &err), -EINVAL);
	assert_null(picked);
	for (; *says; says++)
		if (!strstr(err.text, *says))
			fail_msg("'%s' does not say '%s'", err.text, *says);
}

static void a_word_means_the_first_type_of_its_family(void **state)
{
	(void)state;
	MEANS(go_service, "mutex", "go_mutex:delay:nanoseconds");
	MEANS(go_service, "block", "go_block:delay:nanoseconds");
	MEANS(go_service, "heap", "go_heap:inuse_space:bytes");
	MEANS(go_service, "go_heap", "go_heap:inuse_space:bytes");
	MEANS(go_service, "goroutine", "go_goroutine:goroutine:count");
	MEANS(go_service, "goroutines", "go_goroutine:goroutine:count");
	MEANS(go_service, "cpu", "cpu:cpu:nanoseconds");
	MEANS(java_service, "lock", "java_lock:delay:nanoseconds");
	MEANS(java_service, "offcpu", "offcpu:time:nanoseconds");
}

static void a_name_or_its_first_word_or_a_measure_means_a_type(void **state)
{
	(void)state;
	MEANS(go_service, "alloc_objects", "go_heap:alloc_objects:count");
	MEANS(go_service, "alloc", "go_heap:alloc_space:bytes");
	MEANS(go_service, "allocated", "go_heap:alloc_space:bytes");
	MEANS(go_service, "live", "go_heap:inuse_space:bytes");
	MEANS(java_service, "alloc", "java_alloc:alloc_space:bytes");
	MEANS(go_service, "weight", "ingested:weight:grams");
	MEANS(go_service, "odd", "odd");
}

static void the_type_itself_needs_no_unit(void **state)
{
	(void)state;
	MEANS(go_service, "go_mutex:delay:nanoseconds", "go_mutex:delay:nanoseconds");
	MEANS(go_service, "go_block:delay", "go_block:delay:nanoseconds");
	MEANS(java_service, "java_cpu:cpu", "java_cpu:cpu:nanoseconds");
	MEANS(java_service, "java_cpu", "java_cpu:cpu:nanoseconds");
}

static void types_of_events_do_not_make_the_usual_ones_ambiguous(void **state)
{
	(void)state;
	MEANS(go_service, "inuse_space", "go_heap:inuse_space:bytes");
	MEANS(go_service, "oom", "go_oom:inuse_space:bytes");
	MEANS(go_service, "go_oom:inuse_space", "go_oom:inuse_space:bytes");
}

static void metrics_are_known_by_their_type_only(void **state)
{
	struct err err = {};
	const struct store_stream *picked;

	(void)state;
	MEANS(go_service, "go_runtime:alloc:bytes", "go_runtime:alloc:bytes");
	assert_int_equal(cmd_query_type_pick(go_service, ARRAY_SIZE(go_service), "go_runtime",
					     &picked, &err),
			 -EINVAL);
	assert_null(strstr(err.text, "go_runtime:"));
}

static void a_word_for_several_families_is_refused_with_their_types(void **state)
{
	(void)state;
	REFUSED(go_service, "delay", "ambiguous", "go_block:delay", "go_mutex:delay");
	REFUSED(go_service, "contentions", "go_block:contentions, go_mutex:contentions");
	REFUSED(java_service, "samples", "ambiguous", "cpu:samples", "java_cpu:samples");
}

static void an_unknown_word_is_refused_with_all_types(void **state)
{
	(void)state;
	REFUSED(java_service, "mutex", "'mutex'", "cpu:cpu", "java_lock:delay", "offcpu:waits");
	REFUSED(go_service, "", "go_heap:inuse_space");
	REFUSED(go_service, "go_heap:", "go_heap:inuse_space");
	REFUSED(go_service, "inuse_spac", "go_heap:inuse_space");
}

static void the_heap_comes_first_then_cpu_time_then_whatever_there_is(void **state)
{
	static const struct store_stream others[] = {{.type = "go_runtime:alloc:bytes"},
						     {.type = "ingested:weight:grams"},
						     {.type = "java_lock:contentions:count"},
						     {.type = "java_lock:delay:nanoseconds"}};
	const struct store_stream *picked = NULL;
	struct err err = {};

	(void)state;
	assert_int_equal(cmd_query_type_default(go_service, ARRAY_SIZE(go_service), &picked, &err),
			 0);
	assert_string_equal(picked->type, "go_heap:inuse_space:bytes");
	assert_int_equal(
		cmd_query_type_default(java_service, ARRAY_SIZE(java_service), &picked, &err), 0);
	assert_string_equal(picked->type, "cpu:cpu:nanoseconds");
	assert_int_equal(cmd_query_type_default(others, ARRAY_SIZE(others), &picked, &err), 0);
	assert_string_equal(picked->type, "java_lock:delay:nanoseconds");
	assert_int_equal(cmd_query_type_default(others, 2, &picked, &err), 0);
	assert_string_equal(picked->type, "ingested:weight:grams");
	assert_int_equal(cmd_query_type_default(others, 1, &picked, &err), -ENOENT);
}

static void a_long_list_is_cut_at_a_type(void **state)
{
	struct store_stream many[40] = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		(void)snprintf(many[i].type, sizeof(many[i].type),
			       "some_long_family_%zu:name:count", i);
	REFUSED(many, "x", "some_long_family_0:name, ", ":name, ...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_means_the_first_type_of_its_family),
		cmocka_unit_test(a_name_or_its_first_word_or_a_measure_means_a_type),
		cmocka_unit_test(the_type_itself_needs_no_unit),
		cmocka_unit_test(types_of_events_do_not_make_the_usual_ones_ambiguous),
		cmocka_unit_test(metrics_are_known_by_their_type_only),
		cmocka_unit_test(a_word_for_several_families_is_refused_with_their_types),
		cmocka_unit_test(an_unknown_word_is_refused_with_all_types),
		cmocka_unit_test(the_heap_comes_first_then_cpu_time_then_whatever_there_is),
		cmocka_unit_test(a_long_list_is_cut_at_a_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
