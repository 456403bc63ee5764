/*
 * src/agent/schedule/pool.h: threads for work that may hang.
 *
 * A target can block its reader forever: by page faults that it handles itself, by files on a dead
 * network, by a lock on its address space. Deadlines do not help, because the kernel sleeps in some
 * of these places. So each collection is a job for one of a few threads. Normally there is one.
 * While a job does not return, the next ones go to another thread, up to AGENT_POOL_MAX_THREADS; a
 * hanging job costs its thread and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define AGENT_POOL_MAX_THREADS 32

/* The first member of the caller's struct. */
struct agent_pool_job {
	struct agent_pool_job *next;
	uint64_t queued_ns;
};

struct agent_pool; /* opaque */

/* run is called in one of the threads, with arg. */
int agent_pool_new(void (*run)(struct agent_pool_job *job, void *arg), void *arg,
		   struct agent_pool **ret_pool, struct err *err);
void agent_pool_push(struct agent_pool *pool, struct agent_pool_job *job);
/* A finished job; NULL at until_ns of the monotonic clock, or when woken. */
struct agent_pool_job *agent_pool_take(struct agent_pool *pool, uint64_t until_ns);
void agent_pool_wake(struct agent_pool *pool);
/* All threads are busy, and jobs have waited for a while. */
bool agent_pool_exhausted(struct agent_pool *pool);
/*
 * Ends the threads, and gives back the jobs that nobody took. False: some are still busy. They end
 * with their jobs, and nothing these use may be freed.
 */
bool agent_pool_free(struct agent_pool *pool,
		     void (*give_back)(struct agent_pool_job *job, void *arg));
