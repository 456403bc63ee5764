/* tests/unit/pipeline/test_live.c: what /metrics shows of a source, reading after reading. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/live.h"

static const struct metric gauge = {.name = "t.gauge", .kind = METRIC_GAUGE, .attributes = {"k"}};
static const struct metric counter = {.name = "t.counter", .kind = METRIC_COUNTER};

static struct metrics *reading(const struct metric_point *points, size_t n)
{
	struct metrics *m = metrics_new();

	assert_non_null(m);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(metrics_add(m, &points[i]), 0);
	return m;
}

/* Returns the increase that the last point has then. */
static double take(struct live *live, const struct metric_point *points, size_t n)
{
	struct metrics *m = reading(points, n);
	double increase;

	assert_int_equal(live_take(live, m), 0);
	increase = n ? m->points[n - 1].increase : NAN;
	metrics_free(m);
	return increase;
}

/* As it is shown; NAN: there is no such point. */
static double value_of(const struct live *live, const struct metric *metric, const char *attribute)
{
	struct metrics *m = metrics_new();
	double value = NAN;

	assert_int_equal(live_copy(live, m), 0);
	for (size_t i = 0; i < m->len; i++) {
		const struct metric_point *p = &m->points[i];

		if (p->metric == metric && (!attribute || strcmp(p->attributes[0], attribute) == 0))
			value = p->value;
	}
	metrics_free(m);
	return value;
}

static void gauges_are_as_they_were_said_last(void **state)
{
	const struct metric_point first[] = {
		{.metric = &gauge, .attributes = {"a"}, .value = 1, .increase = NAN},
		{.metric = &gauge, .attributes = {"b"}, .value = 2, .increase = NAN},
	};
	const struct metric_point second[] = {
		{.metric = &gauge, .attributes = {"b"}, .value = 3, .increase = NAN},
	};
	struct live live = {};

	(void)state;
	take(&live, first, 2);
	assert_true(value_of(&live, &gauge, "a") == 1);
	take(&live, second, 1);
	assert_true(isnan(value_of(&live, &gauge, "a")));
	assert_true(value_of(&live, &gauge, "b") == 3);
	live_drop(&live);
	assert_true(isnan(value_of(&live, &gauge, "b")));
	live_clear(&live);
}

static void increases_are_added_up_and_stay(void **state)
{
	const struct metric_point five = {.metric = &counter, .value = NAN, .increase = 5};
	const struct metric_point unknown = {.metric = &counter, .value = NAN, .increase = NAN};
	struct live live = {};

	(void)state;
	take(&live, &unknown, 1);
	assert_true(value_of(&live, &counter, NULL) == 0);
	take(&live, &five, 1);
	take(&live, &five, 1);
	assert_true(value_of(&live, &counter, NULL) == 10);
	take(&live, NULL, 0);
	live_drop(&live);
	assert_true(value_of(&live, &counter, NULL) == 10);
	live_clear(&live);
	assert_null(live.points);
}

static void known_totals_are_not_added_up(void **state)
{
	const struct metric_point first = {.metric = &counter, .value = 100, .increase = NAN};
	const struct metric_point second = {.metric = &counter, .value = 107, .increase = NAN};
	struct live live = {};

	(void)state;
	/* A first reading is the baseline. */
	assert_true(isnan(take(&live, &first, 1)));
	assert_true(take(&live, &second, 1) == 7);
	assert_true(value_of(&live, &counter, NULL) == 107);
	/* Meanwhile it is not shown, and nothing that came meanwhile is lost. */
	live_drop(&live);
	assert_true(isnan(value_of(&live, &counter, NULL)));
	assert_true(take(&live, &second, 1) == 0);
	/* It began anew. */
	assert_true(isnan(take(&live, &first, 1)));
	assert_true(value_of(&live, &counter, NULL) == 100);
	live_clear(&live);
}

static void buckets_are_added_up(void **state)
{
	static const double bounds[] = {1, 10};
	static const struct metric histogram = {
		.name = "t.histogram", .kind = METRIC_HISTOGRAM, .bounds = bounds, .n_bounds = 2};
	const uint64_t counts[] = {1, 0, 4};
	const struct metric_point p = {
		.metric = &histogram, .value = NAN, .increase = NAN, .buckets = counts, .sum = 50};
	struct live live = {};

	(void)state;
	take(&live, &p, 1);
	take(&live, &p, 1);
	assert_int_equal(live.points->len, 1);
	assert_int_equal(live.points->points[0].buckets[0], 2);
	assert_int_equal(live.points->points[0].buckets[1], 0);
	assert_int_equal(live.points->points[0].buckets[2], 8);
	assert_true(live.points->points[0].sum == 100);
	live_drop(&live);
	assert_int_equal(live.points->len, 1);
	live_clear(&live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gauges_are_as_they_were_said_last),
		cmocka_unit_test(increases_are_added_up_and_stay),
		cmocka_unit_test(known_totals_are_not_added_up),
		cmocka_unit_test(buckets_are_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
