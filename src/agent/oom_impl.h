/* src/agent/oom_impl.h: what the threads of agent/oom.h share. */
#pragma once

#include <pthread.h>

#include "agent/oom.h"
#include "oom/limit.h"
#include "oom/victims.h"

/* One program; alive as long as it is counted. */
struct oom_entry {
	unsigned int refs; /* with the lock of struct agent_oom */
	struct source_target target;
	const struct oom_source_ops *ops;
	void *state;

	/* Of the kill; set before it is in the queue. */
	bool killed; /* with the lock */
	bool late;
	int64_t kill_ns; /* since 1970 */
	uint64_t rss_bytes;
	struct oom_entry *next; /* in the queue */

	/* Of the watching thread. */
	struct oom_limit *limit;
	uint64_t limit_ns;   /* when it was looked up */
	uint64_t look_ns;    /* when its next look is due */
	uint64_t written_ns; /* the last picture because a limit was near */
};

struct oom_known {
	pid_t pid;
	struct oom_entry *entry;
};

struct agent_oom {
	struct agent_oom_config config;
	struct inbox *inbox;	     /* where events and pictures go */
	struct oom_victims *victims; /* NULL: we are not told */
	struct oom_mounts mounts;
	int wake; /* an eventfd: the thread that hears victims shall end */
	pthread_t hearing;
	pthread_t making;
	pthread_t watching;

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t news;  /* something is in the queue, or it is the end */
	pthread_cond_t end;
	bool stopping;
	struct oom_known *known;
	size_t n_known;
	size_t cap_known;
	struct oom_entry *queue; /* killed and read: their pictures are still to be made */
	struct oom_entry **queue_end;
	struct agent_oom_health health;
};

void oom_entry_unref(struct agent_oom *oom, struct oom_entry *entry);
/* The kernel has chosen it: reads what is left of its memory. */
void oom_hear(void *oom, const struct oom_victim *victim);
/* oom_watch.c: the threads that make pictures, and that look at limits. */
void *oom_make(void *oom);
void *oom_watch(void *oom);
