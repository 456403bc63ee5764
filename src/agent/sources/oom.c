/*
 * src/agent/sources/oom.c: see oom.h. The table of known processes, and the response to a kill.
 *
 * Only a lock and a search of a short table lie between the notice and the first read. All locks
 * inherit priority, as their holders may be waiting for a CPU.
 */
#include "agent/sources/oom.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/sources/oom_state.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/stat.h"

/* Above everything that is not real-time, below what users made real-time on purpose. */
#define OOM_PRIORITY 1
#define OOM_NICE (-20)
/* How long a thread may finish reading at the end. */
#define OOM_STOP_SEC 3

void agent_oom_entry_unref(struct agent_oom *o, struct agent_oom_entry *entry)
{
	bool last;

	(void)pthread_mutex_lock(&o->lock);
	last = --entry->refs == 0;
	(void)pthread_mutex_unlock(&o->lock);
	if (!last)
		return;
	entry->ops->unref(entry->state);
	oom_limit_close(entry->limit);
	free(entry);
}

int agent_oom_add(struct agent_oom *o, const struct source_target *target,
		  const struct agent_oom_source_ops *ops, void *state)
{
	struct agent_oom_entry *entry = calloc(1, sizeof(*entry));
	struct agent_oom_known *known;
	size_t cap;

	if (!entry)
		return -ENOMEM;
	*entry = (struct agent_oom_entry){.refs = 1, .target = *target, .ops = ops, .state = state};
	(void)pthread_mutex_lock(&o->lock);
	cap = o->n_known < o->cap_known ? o->cap_known : 2 * o->cap_known + 16;
	known = cap == o->cap_known ? o->known : reallocarray(o->known, cap, sizeof(*known));
	if (known) {
		o->known = known;
		o->cap_known = cap;
		o->known[o->n_known++] =
			(struct agent_oom_known){.pid = target->info.id.pid, .entry = entry};
	}
	(void)pthread_mutex_unlock(&o->lock);
	if (known)
		return 0;
	free(entry);
	return -ENOMEM;
}

void agent_oom_remove(struct agent_oom *o, const void *state)
{
	struct agent_oom_entry *entry = NULL;

	(void)pthread_mutex_lock(&o->lock);
	for (size_t i = 0; i < o->n_known && !entry; i++) {
		if (o->known[i].entry->state != state)
			continue;
		entry = o->known[i].entry;
		o->n_known--;
		memmove(&o->known[i], &o->known[i + 1], (o->n_known - i) * sizeof(*o->known));
	}
	(void)pthread_mutex_unlock(&o->lock);
	if (entry)
		agent_oom_entry_unref(o, entry);
}

/* Takes a reference for the caller. A victim may be reported twice: only the first counts. */
static struct agent_oom_entry *victim_find(struct agent_oom *o, pid_t pid)
{
	struct agent_oom_entry *entry = NULL;
	bool again = false;

	(void)pthread_mutex_lock(&o->lock);
	/* If two have the same pid, the later one is alive. */
	for (size_t i = o->n_known; i-- > 0 && !entry;)
		if (o->known[i].pid == pid)
			entry = o->known[i].entry;
	if (!entry)
		o->health.strangers++;
	else if (entry->killed)
		again = true;
	else {
		entry->killed = true;
		entry->refs++;
	}
	(void)pthread_mutex_unlock(&o->lock);
	return again ? NULL : entry;
}

/* The pid may have been reused by a process we have not found yet. */
static bool victim_is_other(const struct agent_oom_entry *entry)
{
	struct proc_stat st;

	return proc_stat_read(entry->target.info.id.pid, &st, NULL) == 0 &&
	       st.start_ticks != entry->target.info.id.start_ticks;
}

static void victim_dismiss(struct agent_oom *o, struct agent_oom_entry *entry)
{
	(void)pthread_mutex_lock(&o->lock);
	entry->killed = false;
	o->health.strangers++;
	(void)pthread_mutex_unlock(&o->lock);
	agent_oom_entry_unref(o, entry);
}

static void victim_enqueue(struct agent_oom *o, struct agent_oom_entry *entry)
{
	(void)pthread_mutex_lock(&o->lock);
	o->health.kills++;
	o->health.late += entry->late;
	entry->next = NULL;
	*o->queue_end = entry;
	o->queue_end = &entry->next;
	(void)pthread_cond_signal(&o->news);
	(void)pthread_mutex_unlock(&o->lock);
}

void agent_oom_hear(void *oom, const struct oom_victim *victim)
{
	struct agent_oom *o = oom;
	struct agent_oom_entry *entry = victim_find(o, victim->pid);

	if (!entry)
		return;
	entry->late = entry->ops->read(entry->state, true) < 0;
	if (victim_is_other(entry)) {
		victim_dismiss(o, entry);
		return;
	}
	entry->kill_ns = (int64_t)(clock_unix_ns() - (clock_mono_ns() - victim->mono_ns));
	entry->rss_bytes = victim->rss_bytes;
	victim_enqueue(o, entry);
}

static bool stopping(struct agent_oom *o)
{
	bool stop;

	(void)pthread_mutex_lock(&o->lock);
	stop = o->stopping;
	(void)pthread_mutex_unlock(&o->lock);
	return stop;
}

static void *listen_for_victims(void *arg)
{
	const struct sched_param param = {.sched_priority = OOM_PRIORITY};
	struct agent_oom *o = arg;
	int r = 0;

	/* Works without permission, too, but is too late more often. */
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) != 0)
		(void)setpriority(PRIO_PROCESS, 0, OOM_NICE);
	while (r == 0 && !stopping(o))
		r = oom_victims_wait(o->victims, o->wake, agent_oom_hear, o);
	if (r == 0)
		return NULL;
	(void)pthread_mutex_lock(&o->lock);
	o->health.hears = false;
	(void)snprintf(o->health.trouble, sizeof(o->health.trouble),
		       "the kernel no longer reports OOM kills: %s", strerror(-r));
	o->health.deaf = err_set(&o->health.why_deaf, r, "%s", o->health.trouble);
	(void)pthread_mutex_unlock(&o->lock);
	return NULL;
}

void agent_oom_health(struct agent_oom *o, struct agent_oom_health *ret_health)
{
	(void)pthread_mutex_lock(&o->lock);
	*ret_health = o->health;
	(void)pthread_mutex_unlock(&o->lock);
	if (o->victims)
		ret_health->lost += oom_victims_lost(o->victims);
}

static int oom_init_locks(struct agent_oom *o)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t cond;

	(void)pthread_mutexattr_init(&mutex);
	(void)pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
	(void)pthread_condattr_init(&cond);
	(void)pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
	if (pthread_mutex_init(&o->lock, &mutex) || pthread_cond_init(&o->news, &cond) ||
	    pthread_cond_init(&o->end, &cond))
		return -ENOMEM;
	return 0;
}

static bool join_in_time(pthread_t thread)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += OOM_STOP_SEC;
	return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

static void oom_tell_end(struct agent_oom *o)
{
	(void)pthread_mutex_lock(&o->lock);
	o->stopping = true;
	(void)pthread_cond_signal(&o->news);
	(void)pthread_cond_signal(&o->end);
	(void)pthread_mutex_unlock(&o->lock);
	(void)eventfd_write(o->wake, 1);
}

bool agent_oom_stop(struct agent_oom *o)
{
	bool ended;

	if (!o)
		return true;
	oom_tell_end(o);
	ended = join_in_time(o->watching);
	ended = join_in_time(o->making) && ended;
	return (!o->victims || join_in_time(o->hearing)) && ended;
}

void agent_oom_free(struct agent_oom *o)
{
	if (!o)
		return;
	while (o->queue) {
		struct agent_oom_entry *next = o->queue->next;

		agent_oom_entry_unref(o, o->queue);
		o->queue = next;
	}
	while (o->n_known > 0)
		agent_oom_entry_unref(o, o->known[--o->n_known].entry);
	free(o->known);
	oom_victims_close(o->victims);
	oom_mounts_close(&o->mounts);
	closep(&o->wake);
	(void)pthread_mutex_destroy(&o->lock);
	(void)pthread_cond_destroy(&o->news);
	(void)pthread_cond_destroy(&o->end);
	free(o);
}

static int oom_start_threads(struct agent_oom *o, struct err *err)
{
	int r = pthread_create(&o->making, NULL, agent_oom_make, o);

	if (r == 0) {
		r = pthread_create(&o->watching, NULL, agent_oom_watch, o);
		if (r) {
			oom_tell_end(o);
			(void)pthread_join(o->making, NULL);
		}
	}
	if (r == 0 && o->victims && pthread_create(&o->hearing, NULL, listen_for_victims, o)) {
		/* Limits alone are better than nothing. */
		oom_victims_close(TAKE_PTR(o->victims));
		o->health.hears = false;
	}
	return r ? err_set(err, -r, "cannot start a thread: %s", strerror(r)) : 0;
}

int agent_oom_start(const struct agent_oom_config *config, struct inbox *inbox,
		    struct agent_oom **ret_oom, struct err *err)
{
	struct agent_oom *o = calloc(1, sizeof(*o));
	int r;

	if (!o || oom_init_locks(o) < 0) {
		free(o);
		return err_oom(err);
	}
	o->config = *config;
	o->inbox = inbox;
	o->queue_end = &o->queue;
	o->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = o->wake < 0 ? err_set(err, -errno, "eventfd: %s", strerror(errno)) : 0;
	o->health.deaf = r < 0 ? r : oom_victims_open(&o->victims, &o->health.why_deaf);
	o->health.hears = o->health.deaf == 0;
	(void)snprintf(o->health.trouble, sizeof(o->health.trouble), "%.*s",
		       (int)sizeof(o->health.trouble) - 1, o->health.why_deaf.text);
	/* Without cgroups there are no limits to watch. */
	o->health.no_limits = oom_mounts_open(&o->mounts, &o->health.why_no_limits);
	if (r == 0)
		r = oom_start_threads(o, err);
	if (r < 0) {
		agent_oom_free(o);
		return r;
	}
	*ret_oom = o;
	return 0;
}

static bool oom_source_is_wanted(const void *config)
{
	const struct agent_oom_config *c = config;

	return c->percent;
}

static int oom_source_start(const void *config, struct inbox *inbox, void **ret_state,
			    struct err *err)
{
	struct agent_oom *o;
	int r = agent_oom_start(config, inbox, &o, err);

	if (r == 0)
		*ret_state = o;
	return r;
}

static bool oom_source_stop(void *state)
{
	return agent_oom_stop(state);
}

static void oom_source_free(void *state)
{
	agent_oom_free(state);
}

const struct source_ops agent_source_oom = {
	.name = "oom",
	.is_wanted = oom_source_is_wanted,
	.start = oom_source_start,
	.stop = oom_source_stop,
	.free = oom_source_free,
};
