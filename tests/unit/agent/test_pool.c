/* tests/unit/agent/test_pool.c: jobs that hang cost their thread and nothing else. */
#include "agent/schedule/pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

/* Nothing here is given a time: what must happen is waited for, and a failure hangs. */
#define FOREVER UINT64_MAX

struct job {
	struct agent_pool_job pool;
	bool hangs;
	bool done;
	struct agent_pool *asks;
};

/* Jobs that hang do so until released; how many there are at a time is known. */
static struct server_gate {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	size_t hanging;
	size_t left; /* have got through */
	bool open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static void gate_set(bool open)
{
	(void)pthread_mutex_lock(&gate.lock);
	gate.open = open;
	gate.left = open ? gate.left : 0;
	(void)pthread_cond_broadcast(&gate.moved);
	(void)pthread_mutex_unlock(&gate.lock);
}

/* Until so many jobs hang, or so many have got through. */
static void gate_wait(const size_t *count, size_t wanted)
{
	(void)pthread_mutex_lock(&gate.lock);
	while (*count < wanted)
		(void)pthread_cond_wait(&gate.moved, &gate.lock);
	(void)pthread_mutex_unlock(&gate.lock);
}

static void run(struct agent_pool_job *pool_job, void *arg)
{
	struct job *job = (struct job *)pool_job;

	assert_ptr_equal(arg, &gate);
	if (job->hangs) {
		(void)pthread_mutex_lock(&gate.lock);
		gate.hanging++;
		(void)pthread_cond_broadcast(&gate.moved);
		while (!gate.open)
			(void)pthread_cond_wait(&gate.moved, &gate.lock);
		gate.hanging--;
		gate.left++;
		(void)pthread_cond_broadcast(&gate.moved);
		(void)pthread_mutex_unlock(&gate.lock);
	}
	job->done = true;
}

static struct agent_pool *pool(void)
{
	struct agent_pool *p;
	struct err err;

	gate_set(false);
	assert_int_equal(agent_pool_new(run, &gate, &p, &err), 0);
	return p;
}

static size_t given_back;

static void give_back(struct agent_pool_job *job, void *arg)
{
	(void)arg;
	given_back += ((struct job *)job)->done;
}

static void jobs_that_nobody_took_are_given_back(void **state)
{
	struct job jobs[20] = {0};
	struct agent_pool *p = pool();

	(void)state;
	for (size_t i = 0; i < 20; i++)
		agent_pool_push(p, &jobs[i].pool);
	assert_non_null(agent_pool_take(p, FOREVER));
	given_back = 0;
	assert_true(agent_pool_free(p, give_back));
	assert_int_equal(given_back, 19);
}

static void ask_and_give_back(struct agent_pool_job *job, void *arg)
{
	assert_false(agent_pool_exhausted(((struct job *)job)->asks));
	give_back(job, arg);
}

/* Its lock is not held: who gets them takes others, under which the pool is asked elsewhere. */
static void who_gets_jobs_back_may_ask_the_pool(void **state)
{
	struct agent_pool *p = pool();
	struct job job = {.asks = p};

	(void)state;
	agent_pool_push(p, &job.pool);
	given_back = 0;
	assert_true(agent_pool_free(p, ask_and_give_back));
	assert_int_equal(given_back, 1);
}

static void jobs_come_back_in_order(void **state)
{
	struct job jobs[100] = {0};
	struct agent_pool *p = pool();

	(void)state;
	for (size_t i = 0; i < 100; i++)
		agent_pool_push(p, &jobs[i].pool);
	for (size_t i = 0; i < 100; i++) {
		assert_ptr_equal(agent_pool_take(p, FOREVER), &jobs[i].pool);
		assert_true(jobs[i].done);
	}
	/* All are back. */
	assert_null(agent_pool_take(p, 0));
	assert_true(agent_pool_free(p, give_back));
}

static void jobs_that_hang_do_not_hold_up_the_next(void **state)
{
	struct job hanging[5] = {0}, quick = {0};
	struct agent_pool *p = pool();

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		hanging[i].hangs = true;
		agent_pool_push(p, &hanging[i].pool);
	}
	agent_pool_push(p, &quick.pool);
	/* The gate is shut: it comes although the others hang, or never. */
	assert_ptr_equal(agent_pool_take(p, FOREVER), &quick.pool);
	gate_wait(&gate.hanging, 5);
	assert_false(agent_pool_exhausted(p));
	gate_set(true);
	for (size_t i = 0; i < 5; i++)
		assert_non_null(agent_pool_take(p, FOREVER));
	assert_true(agent_pool_free(p, give_back));
}

static void number_of_threads_is_bounded_and_said(void **state)
{
	static struct job hanging[AGENT_POOL_MAX_THREADS + 1];
	struct agent_pool *p = pool();
	struct job quick = {0};

	(void)state;
	memset(hanging, 0, sizeof(hanging));
	for (size_t i = 0; i <= AGENT_POOL_MAX_THREADS; i++) {
		hanging[i].hangs = true;
		agent_pool_push(p, &hanging[i].pool);
	}
	agent_pool_push(p, &quick.pool);
	/* Each look gives the pool the time to notice that it is late. */
	while (!agent_pool_exhausted(p))
		assert_null(agent_pool_take(p, clock_mono_ns() + NS_PER_MS));
	gate_wait(&gate.hanging, AGENT_POOL_MAX_THREADS);
	assert_null(agent_pool_take(p, 0));
	assert_false(quick.done);
	gate_set(true);
	for (size_t i = 0; i <= AGENT_POOL_MAX_THREADS + 1; i++)
		assert_non_null(agent_pool_take(p, FOREVER));
	assert_false(agent_pool_exhausted(p));
	assert_true(agent_pool_free(p, give_back));
}

static void pool_that_is_left_behind_says_so(void **state)
{
	static struct job hanging;
	struct agent_pool *p = pool();

	(void)state;
	memset(&hanging, 0, sizeof(hanging));
	hanging.hangs = true;
	agent_pool_push(p, &hanging.pool);
	gate_wait(&gate.hanging, 1);
	assert_false(agent_pool_free(p, give_back));
	gate_set(true);
	/* The thread frees it after this. */
	gate_wait(&gate.left, 1);
}

static void wake_ends_a_wait(void **state)
{
	struct agent_pool *p = pool();

	(void)state;
	agent_pool_wake(p);
	assert_null(agent_pool_take(p, FOREVER));
	assert_true(agent_pool_free(p, give_back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_come_back_in_order),
		cmocka_unit_test(jobs_that_nobody_took_are_given_back),
		cmocka_unit_test(who_gets_jobs_back_may_ask_the_pool),
		cmocka_unit_test(jobs_that_hang_do_not_hold_up_the_next),
		cmocka_unit_test(number_of_threads_is_bounded_and_said),
		cmocka_unit_test(pool_that_is_left_behind_says_so),
		cmocka_unit_test(wake_ends_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
