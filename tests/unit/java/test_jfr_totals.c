/* tests/unit/java/test_jfr_totals.c: what threads have allocated, with threads that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "java/jfr/totals.h"

#define ROUNDS 50
#define THREADS 1000U /* that are born in a round, and end in it */
#define OLD 1U
#define IDLE 2U
#define YOUNG 1000U

struct sums {
	int64_t bytes;
};

static void add(void *arg, size_t sum, int64_t bytes)
{
	struct sums *sums = arg;

	(void)sum;
	sums->bytes += bytes;
}

/* A sample adds its weight itself. */
static void put_sample(struct java_jfr_totals *t, uint64_t thread, int64_t time_ns, int64_t weight,
		       struct sums *sums)
{
	assert_int_equal(java_jfr_totals_sample(t, thread, time_ns, weight, 0), 0);
	sums->bytes += weight;
}

static void put_count(struct java_jfr_totals *t, uint64_t thread, int64_t time_ns, int64_t bytes,
		      bool is_born)
{
	assert_true(java_jfr_totals_count(t, thread, time_ns, bytes, is_born) >= 0);
}

static void threads_that_have_ended_are_forgotten(void **state)
{
	_cleanup_(java_jfr_totals_release) struct java_jfr_totals t = {0};
	struct sums sums = {0};
	uint64_t young = YOUNG;

	(void)state;
	put_count(&t, OLD, 0, 5000, false);
	put_count(&t, IDLE, 0, 7000, false);
	for (int64_t round = 1; round <= ROUNDS; round++) {
		int64_t time_ns = round * 100;

		for (unsigned int i = 0; i < THREADS; i++, young++) {
			put_sample(&t, young, time_ns, 10, &sums);
			put_count(&t, young, time_ns + 1, 30, true);
		}
		put_sample(&t, OLD, time_ns, 1, &sums);
		put_count(&t, OLD, time_ns + 1, 5000 + 100 * round, false);
		put_count(&t, IDLE, time_ns + 1, 7000, false);
		java_jfr_totals_settle(&t, add, &sums);
		assert_int_equal(sums.bytes, round * (30 * (int64_t)THREADS + 100));
		assert_true(t.by_thread.len <= JAVA_JFR_TOTALS_ROUNDS * THREADS + 2);
	}
	/* It was there all the time. */
	sums.bytes = 0;
	put_sample(&t, IDLE, (ROUNDS + 1) * 100, 1, &sums);
	put_count(&t, IDLE, (ROUNDS + 1) * 100 + 1, 7300, false);
	java_jfr_totals_settle(&t, add, &sums);
	assert_int_equal(sums.bytes, 300);
}

static void without_counts_nobody_has_ended(void **state)
{
	_cleanup_(java_jfr_totals_release) struct java_jfr_totals t = {0};
	struct sums sums = {0};

	(void)state;
	put_count(&t, OLD, 0, 5000, false);
	for (int64_t round = 1; round <= ROUNDS; round++) {
		put_sample(&t, YOUNG, round, 1, &sums);
		java_jfr_totals_settle(&t, add, &sums);
	}
	sums.bytes = 0;
	put_sample(&t, OLD, ROUNDS + 1, 1, &sums);
	put_count(&t, OLD, ROUNDS + 2, 5400, false);
	java_jfr_totals_settle(&t, add, &sums);
	assert_int_equal(sums.bytes, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_have_ended_are_forgotten),
		cmocka_unit_test(without_counts_nobody_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
