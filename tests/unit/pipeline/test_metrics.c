/* tests/unit/pipeline/test_metrics.c: points own what they say, and are bounded. */
#include "pipeline/metrics.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "../test_pipeline.h"

static const double bounds[] = {1, 10};
static const struct metric gauge = {
	.name = "gauge", .kind = METRIC_GAUGE, .attributes = {"queue", "state"}};
static const struct metric histogram = {
	.name = "histogram", .kind = METRIC_HISTOGRAM, .bounds = bounds, .n_bounds = 2};

static void point_owns_its_texts_and_buckets(void **state)
{
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();
	char queue[] = "mail";
	uint64_t buckets[] = {1, 2, 3};

	(void)state;
	assert_non_null(m);
	assert_int_equal(
		metrics_add(m, &(struct metric_point){.metric = &gauge,
						      .attributes = {queue, NULL, "beyond"},
						      .value = 4.5}),
		0);
	assert_int_equal(metrics_add(m, &(struct metric_point){.metric = &histogram,
							       .buckets = buckets,
							       .sum = 55}),
			 0);
	memset(queue, 'x', sizeof(queue) - 1);
	memset(buckets, 0, sizeof(buckets));
	assert_int_equal(m->len, 2);
	assert_ptr_equal(m->points[0].metric, &gauge);
	assert_string_equal(m->points[0].attributes[0], "mail");
	assert_null(m->points[0].attributes[1]);
	/* The metric has no third key. */
	assert_null(m->points[0].attributes[2]);
	assert_true(m->points[0].value == 4.5);
	assert_null(m->points[0].buckets);
	assert_int_equal(m->points[1].buckets[0], 1);
	assert_int_equal(m->points[1].buckets[2], 3);
	assert_true(m->points[1].sum == 55);
}

static void short_forms_leave_the_rest_unknown(void **state)
{
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();

	(void)state;
	assert_int_equal(metrics_add_gauge(m, 0, 7), 0);
	assert_int_equal(metrics_add_counter(m, 0, 100, NAN), 0);
	assert_ptr_equal(m->points[0].metric, &registry_metrics[0]);
	assert_true(m->points[0].value == 7 && isnan(m->points[0].increase) &&
		    isnan(m->points[0].sum));
	assert_true(m->points[1].value == 100 && isnan(m->points[1].increase));
}

static void points_beyond_the_limit_are_counted(void **state)
{
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();

	(void)state;
	for (size_t i = 0; i < METRICS_MAX_POINTS; i++)
		assert_int_equal(metrics_add(m, &(struct metric_point){.metric = &gauge}), 0);
	assert_int_equal(metrics_add(m, &(struct metric_point){.metric = &gauge}), -E2BIG);
	assert_int_equal(m->len, METRICS_MAX_POINTS);
	assert_int_equal(m->lost, 1);
}

static void texts_without_end_are_counted_too(void **state)
{
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();
	_cleanup_free_ char *text = malloc((8 << 20) + 1);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', 8 << 20);
	text[8 << 20] = 0;
	assert_int_equal(
		metrics_add(m, &(struct metric_point){.metric = &gauge, .attributes = {text}}),
		-ENOMEM);
	assert_int_equal(m->lost, 1);
	assert_int_equal(m->len, 0);
	assert_int_equal(
		metrics_add(m, &(struct metric_point){.metric = &gauge, .attributes = {"short"}}),
		0);
	metrics_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(point_owns_its_texts_and_buckets),
		cmocka_unit_test(short_forms_leave_the_rest_unknown),
		cmocka_unit_test(points_beyond_the_limit_are_counted),
		cmocka_unit_test(texts_without_end_are_counted_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
