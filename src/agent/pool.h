/*
 * src/agent/pool.h: threads that do what may hang.
 *
 * A target can keep a reader waiting without end: by page faults that it answers itself, by files
 * on a dead network, by a lock on its address space. Reading with deadlines is not enough, because
 * the kernel sleeps in some of these places; so each collection is a job for one of a few threads.
 * Normally there is one. While a job does not come back, the next ones go to another thread, up to
 * POOL_MAX_THREADS; a job that hangs costs its thread and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define POOL_MAX_THREADS 32

/* Embedded first in what the caller passes around. */
struct pool_job {
	struct pool_job *next;
	uint64_t queued_ns;
};

struct pool; /* opaque */

/* run is called in one of the threads, with the argument given here. */
int pool_new(void (*run)(struct pool_job *job, void *arg), void *arg, struct pool **ret_pool,
	     struct err *err);
void pool_push(struct pool *pool, struct pool_job *job);
/* A job that is done; NULL at until_ns of the monotonic clock, or when woken. */
struct pool_job *pool_take(struct pool *pool, uint64_t until_ns);
void pool_wake(struct pool *pool);
/* All threads are at work, and jobs have waited for a while. */
bool pool_exhausted(struct pool *pool);
/*
 * Ends the threads. False when some are still at work: they end when their jobs do, and what these
 * use must stay.
 */
bool pool_free(struct pool *pool);
