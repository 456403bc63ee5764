/* tests/unit/test_agent_pool.c: jobs that hang cost their thread and nothing else. */
#include "agent/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

struct job {
	struct pool_job pool;
	bool hangs;
	bool done;
};

static atomic_bool release;

static void run(struct pool_job *pool_job, void *arg)
{
	struct job *job = (struct job *)pool_job;

	assert_ptr_equal(arg, &release);
	while (job->hangs && !atomic_load(&release))
		clock_sleep_ns(2 * NS_PER_MS);
	job->done = true;
}

static struct pool *pool(void)
{
	struct pool *p;
	struct err err;

	atomic_store(&release, false);
	assert_int_equal(pool_new(run, &release, &p, &err), 0);
	return p;
}

static uint64_t in_ms(uint64_t ms)
{
	return clock_mono_ns() + ms * NS_PER_MS;
}

static void jobs_come_back_in_order(void **state)
{
	struct job jobs[100] = {0};
	struct pool *p = pool();

	(void)state;
	for (size_t i = 0; i < 100; i++)
		pool_push(p, &jobs[i].pool);
	for (size_t i = 0; i < 100; i++) {
		assert_ptr_equal(pool_take(p, in_ms(5000)), &jobs[i].pool);
		assert_true(jobs[i].done);
	}
	assert_null(pool_take(p, in_ms(10)));
	assert_true(pool_free(p));
}

static void jobs_that_hang_do_not_hold_up_the_next(void **state)
{
	struct job hanging[5] = {0}, quick = {0};
	struct pool *p = pool();
	uint64_t begin = clock_mono_ns();

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		hanging[i].hangs = true;
		pool_push(p, &hanging[i].pool);
	}
	pool_push(p, &quick.pool);
	assert_ptr_equal(pool_take(p, in_ms(10000)), &quick.pool);
	assert_true(clock_mono_ns() - begin < 5 * NS_PER_SEC);
	assert_false(pool_exhausted(p));
	atomic_store(&release, true);
	for (size_t i = 0; i < 5; i++)
		assert_non_null(pool_take(p, in_ms(5000)));
	assert_true(pool_free(p));
}

static void number_of_threads_is_bounded_and_said(void **state)
{
	static struct job hanging[POOL_MAX_THREADS + 1];
	struct pool *p = pool();
	struct job quick = {0};

	(void)state;
	memset(hanging, 0, sizeof(hanging));
	for (size_t i = 0; i <= POOL_MAX_THREADS; i++) {
		hanging[i].hangs = true;
		pool_push(p, &hanging[i].pool);
	}
	pool_push(p, &quick.pool);
	assert_null(pool_take(p, in_ms(3000)));
	assert_true(pool_exhausted(p));
	atomic_store(&release, true);
	for (size_t i = 0; i <= POOL_MAX_THREADS + 1; i++)
		assert_non_null(pool_take(p, in_ms(5000)));
	assert_false(pool_exhausted(p));
	assert_true(pool_free(p));
}

static void pool_that_is_left_behind_says_so(void **state)
{
	static struct job hanging;
	struct pool *p = pool();

	(void)state;
	memset(&hanging, 0, sizeof(hanging));
	hanging.hangs = true;
	pool_push(p, &hanging.pool);
	assert_null(pool_take(p, in_ms(50)));
	assert_false(pool_free(p));
	atomic_store(&release, true);
	/* The thread frees it now. */
	clock_sleep_ns(100 * NS_PER_MS);
}

static void wake_ends_a_wait(void **state)
{
	struct pool *p = pool();
	uint64_t begin = clock_mono_ns();

	(void)state;
	pool_wake(p);
	assert_null(pool_take(p, in_ms(10000)));
	assert_true(clock_mono_ns() - begin < 5 * NS_PER_SEC);
	assert_true(pool_free(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_come_back_in_order),
		cmocka_unit_test(jobs_that_hang_do_not_hold_up_the_next),
		cmocka_unit_test(number_of_threads_is_bounded_and_said),
		cmocka_unit_test(pool_that_is_left_behind_says_so),
		cmocka_unit_test(wake_ends_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
