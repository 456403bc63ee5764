/* tests/unit/query/test_level.c: processes that are read at different rates, and short-lived ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "query/metrics.h"

enum { PROCESSES = 3 };

/* A process is read every so many seconds from its first to its last one, and always has one value.
 */
struct process {
	const char *pid;
	int first, last, every;
	double value;
};
static const struct process *processes;
static size_t n_processes;

static double *new_row(struct arena *memory, size_t n)
{
	double *row = arena_alloc(memory, n * sizeof(*row));

	assert_non_null(row);
	for (size_t i = 0; i < n; i++)
		row[i] = NAN;
	return row;
}

/* What the store answers: averages and last values are the same here. */
static bool fill(const struct process *p, const struct store_metric_query *q, struct arena *memory,
		 struct store_series *s)
{
	struct label *label = arena_alloc(memory, sizeof(*label));
	uint32_t *readings = arena_alloc(memory, q->n_points * sizeof(*readings));
	bool any = false;

	assert_true(label && readings);
	*label = (struct label){"pid", p->pid};
	*s = (struct store_series){.metric = q->metric,
				   .kind = METRIC_GAUGE,
				   .labels = label,
				   .n_labels = 1,
				   .width = 1,
				   .readings = readings,
				   .points = new_row(memory, q->n_points)};
	for (int t = p->first; t <= p->last; t += p->every) {
		int64_t ns = (int64_t)t * NS_PER_SEC;
		size_t at = (size_t)((ns - q->from_ns) / q->step_ns);

		if (ns < q->from_ns || ns >= q->to_ns)
			continue;
		assert_true(at < q->n_points);
		s->points[at] = p->value;
		readings[at]++;
		s->first_ns = any ? s->first_ns : ns;
		s->last_ns = ns;
		any = true;
	}
	return any;
}

int store_metrics(struct store *store, const struct store_metric_query *query,
		  struct store_metric_answer *ret_answer, struct err *err)
{
	struct store_metric_answer a = {.known = true, .kind = METRIC_GAUGE};

	(void)store;
	(void)err;
	a.series = arena_alloc(&a.memory, PROCESSES * sizeof(*a.series));
	assert_non_null(a.series);
	for (size_t i = 0; i < n_processes; i++)
		a.len += fill(&processes[i], query, &a.memory, &a.series[a.len]);
	*ret_answer = a;
	return 0;
}

void store_metric_answer_release(struct store_metric_answer *answer)
{
	arena_release(&answer->memory);
}

/* The sum over processes, at each step of a window. */
static void assert_sums(const struct process *all, size_t n, int from, int to, int step,
			const double *wanted)
{
	const size_t points = (size_t)((to - from) / step);
	const struct store_metric_query q = {.service = "s",
					     .metric = "m",
					     .from_ns = from * (int64_t)NS_PER_SEC,
					     .to_ns = to * (int64_t)NS_PER_SEC,
					     .step_ns = step * (int64_t)NS_PER_SEC,
					     .n_points = points};
	const struct query_grouping one = {0};
	struct query_metrics m;
	struct err err;

	processes = all;
	n_processes = n;
	assert_int_equal(query_metrics(NULL, &q, &one, &m, &err), 0);
	assert_int_equal(m.len, 1);
	for (size_t i = 0; i < points; i++) {
		double got = m.groups[0].points[i];

		if (isnan(wanted[i]) ? !isnan(got) : fabs(got - wanted[i]) > 1e-6)
			fail_msg("step %zu of %d s from %d: %f, not %f", i, step, from, got,
				 wanted[i]);
	}
	query_metrics_release(&m);
}

static const struct process rare_and_often[] = {{"1", 2000, 2060, 1, 35},
						{"2", 2000, 2060, 7, 60000}};

static void a_window_of_one_step_has_all_processes_however_rarely_they_are_read(void **state)
{
	static const double wanted[] = {60035};

	(void)state;
	for (int length = 4; length <= 40; length++)
		for (int from = 2007; from + length <= 2056; from++)
			assert_sums(rare_and_often, 2, from, from + length, length, wanted);
}

static void the_last_value_before_the_window_stands_in_it(void **state)
{
	double wanted[10];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		wanted[i] = 60035;
	for (int from = 2014; from <= 2046; from++)
		assert_sums(rare_and_often, 2, from, from + 10, 1, wanted);
	/* Also where the window has no reading of it at all. */
	assert_sums(rare_and_often, 2, 2015, 2020, 1, wanted);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		wanted[i] = 60000;
	assert_sums(rare_and_often + 1, 1, 2015, 2020, 1, wanted);
}

static void processes_that_follow_each_other_do_not_add_up(void **state)
{
	static const struct process all[] = {
		{"1", 2000, 2009, 1, 100}, {"2", 2010, 2019, 1, 100}, {"3", 2000, 2019, 1, 1}};
	static const double wanted[] = {101}, halves[] = {101, 101}, ended[] = {51};

	(void)state;
	assert_sums(all, 3, 2000, 2020, 20, wanted);
	assert_sums(all, 2, 2000, 2020, 20, (const double[]){100});
	assert_sums(all, 3, 2000, 2020, 10, halves);
	/* One of them is gone, and nothing follows it. */
	assert_sums((const struct process[]){all[0], all[2]}, 2, 2000, 2020, 20, ended);
}

static void what_has_ended_before_the_window_is_not_in_it(void **state)
{
	static const struct process all[] = {{"1", 2000, 2009, 1, 100}, {"3", 2000, 2040, 1, 1}};
	static const double wanted[] = {1, 1};

	(void)state;
	assert_sums(all, 2, 2020, 2030, 5, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_window_of_one_step_has_all_processes_however_rarely_they_are_read),
		cmocka_unit_test(the_last_value_before_the_window_stands_in_it),
		cmocka_unit_test(processes_that_follow_each_other_do_not_add_up),
		cmocka_unit_test(what_has_ended_before_the_window_is_not_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
