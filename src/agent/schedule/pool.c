/* src/agent/schedule/pool.c: see pool.h. */
#include "agent/schedule/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Start another thread once a job has waited this long. A collection takes a millisecond. */
#define POOL_PATIENCE_NS (50 * NS_PER_MS)
/* A thread beyond the first exits after this long without work. */
#define POOL_IDLE_NS (10 * NS_PER_SEC)
/* How long busy threads may take at the end; beyond that they hang. Idle ones always exit. */
#define POOL_LEAVE_NS (200 * NS_PER_MS)
#define POOL_STACK_BYTES ((size_t)1 << 20)

struct pool_queue {
	struct agent_pool_job *head;
	struct agent_pool_job **tail;
};

struct agent_pool {
	void (*run)(struct agent_pool_job *job, void *arg);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t work; /* something is in todo, or the pool is closing */
	pthread_cond_t news; /* something is in done, or agent_pool_take() is woken */
	struct pool_queue todo;
	struct pool_queue done;
	size_t threads;
	size_t idle;
	size_t at_work;
	bool woken;
	bool ending;
	bool orphaned; /* the last thread releases it */
};

static void queue_init(struct pool_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
}

static void queue_append(struct pool_queue *q, struct agent_pool_job *job)
{
	job->next = NULL;
	*q->tail = job;
	q->tail = &job->next;
}

static struct agent_pool_job *queue_pop(struct pool_queue *q)
{
	struct agent_pool_job *job = q->head;

	if (!job)
		return NULL;
	q->head = job->next;
	if (!q->head)
		q->tail = &q->head;
	return job;
}

static int cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int r = pthread_condattr_init(&attr);

	if (r)
		return -r;
	r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (r == 0)
		r = pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
	return -r;
}

static bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_SEC),
			     .tv_nsec = (long)(ns % NS_PER_SEC)};

	return pthread_cond_timedwait(cond, lock, &t) == 0;
}

int agent_pool_new(void (*run)(struct agent_pool_job *job, void *arg), void *arg,
		   struct agent_pool **ret_pool, struct err *err)
{
	struct agent_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return err_oom(err);
	pool->run = run;
	pool->arg = arg;
	queue_init(&pool->todo);
	queue_init(&pool->done);
	if (pthread_mutex_init(&pool->lock, NULL) || cond_init(&pool->work) < 0 ||
	    cond_init(&pool->news) < 0) {
		free(pool);
		return err_set(err, -EAGAIN, "cannot create locks for threads");
	}
	*ret_pool = pool;
	return 0;
}

static void pool_release(struct agent_pool *pool)
{
	(void)pthread_cond_destroy(&pool->news);
	(void)pthread_cond_destroy(&pool->work);
	(void)pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* The next job; NULL if this thread should exit. With the lock held. */
static struct agent_pool_job *pool_next(struct agent_pool *pool)
{
	while (!pool->todo.head && !pool->ending) {
		bool called;

		pool->idle++;
		called = cond_wait_until(&pool->work, &pool->lock, clock_mono_ns() + POOL_IDLE_NS);
		pool->idle--;
		if (!called && !pool->todo.head && pool->threads > 1)
			return NULL;
	}
	return queue_pop(&pool->todo);
}

static void *pool_thread(void *arg)
{
	struct agent_pool *pool = arg;
	struct agent_pool_job *job;
	bool last;

	(void)pthread_mutex_lock(&pool->lock);
	while ((job = pool_next(pool))) {
		pool->at_work++;
		(void)pthread_mutex_unlock(&pool->lock);
		pool->run(job, pool->arg);
		(void)pthread_mutex_lock(&pool->lock);
		pool->at_work--;
		queue_append(&pool->done, job);
		(void)pthread_cond_signal(&pool->news);
	}
	pool->threads--;
	last = pool->orphaned && pool->threads == 0;
	(void)pthread_cond_signal(&pool->news);
	(void)pthread_mutex_unlock(&pool->lock);
	if (last)
		pool_release(pool);
	return NULL;
}

/* With the lock held. If no thread can be created, the jobs wait for the next attempt. */
static void pool_spawn(struct agent_pool *pool)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr))
		return;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, POOL_STACK_BYTES);
	if (pthread_create(&thread, &attr, pool_thread, pool) == 0)
		pool->threads++;
	(void)pthread_attr_destroy(&attr);
}

static bool pool_is_late(const struct agent_pool *pool)
{
	return pool->todo.head && pool->idle == 0 &&
	       clock_mono_ns() - pool->todo.head->queued_ns >= POOL_PATIENCE_NS;
}

void agent_pool_push(struct agent_pool *pool, struct agent_pool_job *job)
{
	job->queued_ns = clock_mono_ns();
	(void)pthread_mutex_lock(&pool->lock);
	queue_append(&pool->todo, job);
	if (pool->threads == 0)
		pool_spawn(pool);
	(void)pthread_cond_signal(&pool->work);
	(void)pthread_mutex_unlock(&pool->lock);
}

struct agent_pool_job *agent_pool_take(struct agent_pool *pool, uint64_t until_ns)
{
	struct agent_pool_job *job;

	(void)pthread_mutex_lock(&pool->lock);
	for (;;) {
		uint64_t now = clock_mono_ns();

		job = queue_pop(&pool->done);
		if (job || pool->woken || now >= until_ns)
			break;
		if (pool_is_late(pool) && pool->threads < AGENT_POOL_MAX_THREADS)
			pool_spawn(pool);
		(void)cond_wait_until(&pool->news, &pool->lock,
				      pool->todo.head ? MIN(until_ns, now + POOL_PATIENCE_NS)
						      : until_ns);
	}
	pool->woken = false;
	(void)pthread_mutex_unlock(&pool->lock);
	return job;
}

void agent_pool_wake(struct agent_pool *pool)
{
	(void)pthread_mutex_lock(&pool->lock);
	pool->woken = true;
	(void)pthread_cond_signal(&pool->news);
	(void)pthread_mutex_unlock(&pool->lock);
}

bool agent_pool_exhausted(struct agent_pool *pool)
{
	bool exhausted;

	(void)pthread_mutex_lock(&pool->lock);
	exhausted = pool->threads == AGENT_POOL_MAX_THREADS && pool_is_late(pool);
	(void)pthread_mutex_unlock(&pool->lock);
	return exhausted;
}

/* No thread is left, but perhaps what they have done. Without the lock: who gets it has its own. */
static void pool_give_back(struct agent_pool *pool,
			   void (*give_back)(struct agent_pool_job *job, void *arg))
{
	struct agent_pool_job *job;

	while ((job = queue_pop(&pool->done)) || (job = queue_pop(&pool->todo)))
		give_back(job, pool->arg);
}

bool agent_pool_free(struct agent_pool *pool,
		     void (*give_back)(struct agent_pool_job *job, void *arg))
{
	uint64_t until = clock_mono_ns() + POOL_LEAVE_NS;
	bool all;

	if (!pool)
		return true;
	(void)pthread_mutex_lock(&pool->lock);
	pool->ending = true;
	(void)pthread_cond_broadcast(&pool->work);
	while (pool->threads > pool->at_work || (pool->at_work && clock_mono_ns() < until))
		(void)cond_wait_until(&pool->news, &pool->lock, clock_mono_ns() + POOL_LEAVE_NS);
	all = pool->threads == 0;
	pool->orphaned = !all;
	(void)pthread_mutex_unlock(&pool->lock);
	if (!all)
		return false;
	pool_give_back(pool, give_back);
	pool_release(pool);
	return true;
}
