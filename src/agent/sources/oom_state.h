/* src/agent/sources/oom_state.h: shared by the threads of agent/sources/oom.h. */
#pragma once

#include <pthread.h>

#include "agent/sources/oom.h"
#include "oom/limit.h"
#include "oom/victims.h"

/* One process; reference-counted. */
struct agent_oom_entry {
	unsigned int refs; /* with the lock of struct agent_oom */
	struct source_target target;
	const struct agent_oom_source_ops *ops;
	void *state;

	/* The kill; set before it is queued. */
	bool killed; /* with the lock */
	bool late;
	int64_t kill_ns; /* since 1970 */
	uint64_t rss_bytes;
	struct agent_oom_entry *next; /* in the queue */

	/* For the watching thread. */
	struct oom_limit *limit;
	uint64_t limit_ns;   /* when it was looked up */
	uint64_t look_ns;    /* when its next check is due */
	uint64_t written_ns; /* the last snapshot near a limit */
};

struct agent_oom_known {
	pid_t pid;
	struct agent_oom_entry *entry;
};

struct agent_oom {
	struct agent_oom_config config;
	struct inbox *inbox;	     /* for events and snapshots */
	struct oom_victims *victims; /* NULL: no reports */
	struct oom_mounts mounts;
	int wake; /* an eventfd: ends the thread that waits for victims */
	pthread_t hearing;
	pthread_t making;
	pthread_t watching;

	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t news;  /* something was queued, or it is the end */
	pthread_cond_t end;
	bool stopping;
	struct agent_oom_known *known;
	size_t n_known;
	size_t cap_known;
	struct agent_oom_entry *queue; /* killed and read, waiting for their snapshots */
	struct agent_oom_entry **queue_end;
	struct agent_oom_health health;
};

void agent_oom_entry_unref(struct agent_oom *oom, struct agent_oom_entry *entry);
/* The kernel has chosen it: reads the rest of its memory. */
void agent_oom_hear(void *oom, const struct oom_victim *victim);
/* oom_watch.c: the threads that build snapshots, and that watch limits. */
void *agent_oom_make(void *oom);
void *agent_oom_watch(void *oom);
