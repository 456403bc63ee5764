/* tests/unit/query/test_covered.c: what did not run, and what was not watched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "query/covered.h"

enum { POINTS = 6 };

/* Two starts of sonde, one after the other; the second did not watch waits. */
static double first[POINTS] = {NAN, 15, 15, NAN, NAN, NAN};
static double second[POINTS] = {NAN, NAN, 5, NAN, 15, NAN};
static double spread[POINTS] = {NAN, NAN, NAN, NAN, 15, NAN};
static double stalled[POINTS] = {NAN, NAN, 15, 15, NAN, NAN};
static int error;

int store_metrics(struct store *store, const struct store_metric_query *query,
		  struct store_metric_answer *ret_answer, struct err *err)
{
	static const struct label cpu = {"sonde.source", "cpu"},
				  offcpu = {"sonde.source", "offcpu"},
				  readings = {"sonde.source", "readings"},
				  unknown = {"sonde.source", "stars"};
	static struct store_series covered[] = {
		{.attributes = &cpu, .n_attributes = 1, .points = first, .width = 1},
		{.attributes = &offcpu, .n_attributes = 1, .points = first, .width = 1},
		{.attributes = &cpu, .n_attributes = 1, .points = second, .width = 1},
	};
	static struct store_series late[] = {
		{.attributes = &cpu, .n_attributes = 1, .points = spread, .width = 1},
		{.attributes = &readings, .n_attributes = 1, .points = stalled, .width = 1},
		{.attributes = &unknown, .n_attributes = 1, .points = first, .width = 1},
	};

	(void)store;
	assert_string_equal(query->service, "sonde");
	assert_int_equal(query->n_points, POINTS);
	*ret_answer = (struct store_metric_answer){0};
	if (error)
		return err_set(err, error, "the store does not like this");
	if (strcmp(query->metric, "sonde.covered") == 0) {
		ret_answer->series = covered;
		ret_answer->len = 3;
	} else {
		assert_string_equal(query->metric, "sonde.spread");
		ret_answer->series = late;
		ret_answer->len = 3;
	}
	return 0;
}

void store_metric_answer_release(struct store_metric_answer *answer)
{
	(void)answer;
}

static void assert_points(const double *points, const double *wanted)
{
	for (size_t i = 0; i < POINTS; i++)
		if (isnan(wanted[i]) ? !isnan(points[i]) : points[i] != wanted[i])
			fail_msg("point %zu is %f, not %f", i, points[i], wanted[i]);
}

static void what_did_not_run_is_zero_where_it_was_watched(void **state)
{
	static const double cpu[POINTS] = {NAN, 7, 0, NAN, 0, NAN};
	static const double offcpu[POINTS] = {NAN, 7, 0, NAN, NAN, NAN};
	static const double same[POINTS] = {NAN, 7, NAN, NAN, NAN, NAN};
	struct query_covered c;
	double points[POINTS];
	struct err err;

	(void)state;
	assert_int_equal(query_covered_read(NULL, 0, 90, 15, POINTS, &c, &err), 0);
	memcpy(points, same, sizeof(points));
	query_covered_fill(&c, "cpu:cpu:nanoseconds", points);
	assert_points(points, cpu);
	memcpy(points, same, sizeof(points));
	query_covered_fill(&c, "offcpu:time:nanoseconds", points);
	assert_points(points, offcpu);
	/* Who else is not asked each time. */
	memcpy(points, same, sizeof(points));
	query_covered_fill(&c, "go_heap:alloc_space:bytes", points);
	query_covered_fill(&c, "cpus:x:count", points);
	assert_points(points, same);
	for (size_t i = 0; i < POINTS + 1; i++) {
		assert_int_equal(query_covered_is_spread(&c, "cpu:cpu:nanoseconds", i), i == 4);
		assert_false(query_covered_is_spread(&c, "offcpu:time:nanoseconds", i));
		assert_int_equal(query_covered_is_spread(&c, "go_heap:alloc_space:bytes", i),
				 i == 2 || i == 3);
	}
	query_covered_release(&c);
}

static void nothing_is_filled_without_a_word_of_the_agent(void **state)
{
	struct query_covered c = {0};
	double points[POINTS] = {NAN, 1, NAN, NAN, NAN, NAN};
	const double same[POINTS] = {NAN, 1, NAN, NAN, NAN, NAN};
	struct err err;

	(void)state;
	query_covered_fill(&c, "cpu:cpu:nanoseconds", points);
	assert_points(points, same);
	assert_int_equal(query_covered_read(NULL, 0, 0, 15, 0, &c, &err), 0);
	query_covered_release(&c);
	error = -EIO;
	assert_int_equal(query_covered_read(NULL, 0, 90, 15, POINTS, &c, &err), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_did_not_run_is_zero_where_it_was_watched),
		cmocka_unit_test(nothing_is_filled_without_a_word_of_the_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
