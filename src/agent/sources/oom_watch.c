/*
 * src/agent/sources/oom_watch.c: builds OOM snapshots, and watches how close processes are to their
 * limits.
 *
 * There are two threads: a process near its limit is alive, and a hostile one can make its reader
 * hang, as in the pool. Snapshots of killed processes must still be built.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/sources/oom_state.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

#define WATCH_NS (1 * NS_PER_SEC)
/* A process about to come near its limit is checked after half that time, but not before this. */
#define WATCH_MIN_NS (20 * NS_PER_MS)
/* Processes move between groups, and limits change, but rarely. */
#define WATCH_LOOK_UP_NS (30 * NS_PER_SEC)
/*
 * The data of a read stays in the reader, for the snapshot on a kill. This is how often one is also
 * written.
 */
#define WATCH_WRITE_NS (60 * NS_PER_SEC)
/* Programs read in one round because they are near their limits. */
#define WATCH_MAX_NEAR 64

/* Takes the record. Need not wait for the environment to be read: the target is known. */
static void hand_over(struct agent_oom *o, const struct agent_oom_entry *entry, int64_t time_ns,
		      struct record *record)
{
	const struct record_time when = {.time_ns = time_ns, .duration_ns = (int64_t)NS_PER_SEC};
	struct delivery *d = delivery_new(record, when);
	struct delivery_list list;

	if (!d)
		return;
	d->info = entry->target.info;
	d->urgent = true;
	delivery_list_init(&list);
	delivery_list_add(&list, d);
	inbox_put(o->inbox, &list);
}

/* Takes the profile. NULL if out of memory. */
static struct event *event_make(const struct agent_oom_entry *entry, bool killed,
				struct profile *profile)
{
	struct event *e = event_new(killed ? EVENT_OOM_KILL : EVENT_OOM_NEAR);
	char rss[24];

	if (!e) {
		profile_free(profile);
		return NULL;
	}
	e->profile = profile;
	e->snapshot_types = registry_snapshot_types(e->kind->family, profile);
	if (!killed) {
		(void)snprintf(e->sentence, sizeof(e->sentence), "near its memory limit");
		return e;
	}
	(void)snprintf(rss, sizeof(rss), "%llu", (unsigned long long)entry->rss_bytes);
	event_add(e, "oom.rss", rss);
	event_add(e, "oom.picture", entry->late ? "earlier" : "kill");
	(void)snprintf(e->sentence, sizeof(e->sentence), "OOM-killed");
	return e;
}

/*
 * Builds the snapshot of the last read and delivers it with the event, then that of the goroutines,
 * with the same time. Having no goroutines is no loss.
 */
static void picture_make(struct agent_oom *o, struct agent_oom_entry *entry, bool killed,
			 int64_t time_ns)
{
	struct record_profile goroutines = {.family = registry_events[EVENT_OOM_KILL].family};
	struct profile *profile = NULL;
	struct event *event = NULL;

	if (entry->ops->picture(entry->state, &profile, NULL) == 0)
		event = event_make(entry, killed, profile);
	(void)pthread_mutex_lock(&o->lock);
	o->health.near += event && !killed;
	o->health.lost += !event && killed;
	(void)pthread_mutex_unlock(&o->lock);
	if (!event)
		return;
	hand_over(o, entry, time_ns, record_new_event(event));
	if (!entry->ops->goroutines ||
	    entry->ops->goroutines(entry->state, killed, &goroutines.profile, NULL) < 0)
		return;
	goroutines.snapshot_types = registry_snapshot_types(goroutines.family, goroutines.profile);
	hand_over(o, entry, time_ns, record_new_profile(&goroutines));
}

static struct agent_oom_entry *queue_take(struct agent_oom *o)
{
	struct agent_oom_entry *entry;

	(void)pthread_mutex_lock(&o->lock);
	entry = o->queue;
	if (entry)
		o->queue = entry->next;
	if (!o->queue)
		o->queue_end = &o->queue;
	(void)pthread_mutex_unlock(&o->lock);
	return entry;
}

static void kills_finish(struct agent_oom *o)
{
	struct agent_oom_entry *entry;

	while ((entry = queue_take(o))) {
		picture_make(o, entry, true, entry->kill_ns);
		agent_oom_entry_unref(o, entry);
	}
}

/* A process in a group with a limit is checked every second; for others this is all. */
static void limit_look_up(const struct agent_oom *o, struct agent_oom_entry *entry, uint64_t now)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(64 << 10);
	struct oom_limit *limit;
	char path[64];

	if (entry->limit_ns && now - entry->limit_ns < WATCH_LOOK_UP_NS)
		return;
	entry->limit_ns = now;
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)entry->target.info.id.pid);
	if (io_read_file(AT_FDCWD, path, &text, NULL) < 0 || !buf_cstr(&text) ||
	    oom_limit_open(&o->mounts, buf_cstr(&text), &limit, NULL) < 0)
		return;
	oom_limit_close(entry->limit);
	entry->limit = limit;
}

/* True if it was read. */
static bool entry_watch(struct agent_oom *o, struct agent_oom_entry *entry, uint64_t now)
{
	struct oom_fill fill;
	uint64_t left;

	entry->look_ns = now + WATCH_NS;
	limit_look_up(o, entry, now);
	if (!entry->limit)
		return false;
	if (!oom_limit_is_near(entry->limit, o->config.percent, &fill)) {
		left = oom_limit_left_ns(entry->limit, o->config.percent, now);
		entry->look_ns = now + MIN(MAX(left / 2, WATCH_MIN_NS), WATCH_NS);
		return false;
	}
	if (entry->ops->read(entry->state, false) < 0)
		return true;
	if (!entry->written_ns || now - entry->written_ns >= WATCH_WRITE_NS) {
		entry->written_ns = now;
		picture_make(o, entry, false, (int64_t)clock_unix_ns());
	}
	return true;
}

/* All entries that are due, with a reference to each. */
static struct agent_oom_entry **entries_hold(struct agent_oom *o, uint64_t now, size_t *ret_len)
{
	struct agent_oom_entry **entries;

	*ret_len = 0;
	(void)pthread_mutex_lock(&o->lock);
	entries = calloc(o->n_known + 1, sizeof(struct agent_oom_entry *));
	for (size_t i = 0; entries && i < o->n_known; i++) {
		struct agent_oom_entry *entry = o->known[i].entry;

		if (entry->look_ns > now)
			continue;
		entries[(*ret_len)++] = entry;
		entry->refs++;
	}
	(void)pthread_mutex_unlock(&o->lock);
	return entries;
}

/*
 * If more are near than can be read, rotate, so that it is not always the same ones that miss out.
 */
static void limits_watch(struct agent_oom *o, size_t round)
{
	_cleanup_free_ struct agent_oom_entry **entries = NULL;
	uint64_t now = clock_mono_ns();
	size_t len, near = 0;

	entries = entries_hold(o, now, &len);
	for (size_t i = 0; entries && i < len; i++) {
		struct agent_oom_entry *entry = entries[(i + round * WATCH_MAX_NEAR) % len];

		if (near < WATCH_MAX_NEAR)
			near += entry_watch(o, entry, clock_mono_ns());
		else
			entry->look_ns = now + WATCH_NS;
		agent_oom_entry_unref(o, entry);
	}
}

/* When the next check is due; new entries wait for it. */
static uint64_t limits_next_ns(struct agent_oom *o)
{
	uint64_t now = clock_mono_ns();
	uint64_t next = now + WATCH_NS;

	(void)pthread_mutex_lock(&o->lock);
	for (size_t i = 0; i < o->n_known; i++)
		if (o->known[i].entry->look_ns)
			next = MIN(next, o->known[i].entry->look_ns);
	(void)pthread_mutex_unlock(&o->lock);
	return MAX(next, now + WATCH_MIN_NS);
}

/* False if it is time to stop. */
static bool watch_wait(struct agent_oom *o, uint64_t until_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				       .tv_nsec = (long)(until_ns % NS_PER_SEC)};
	bool go_on;

	(void)pthread_mutex_lock(&o->lock);
	while (!o->stopping && clock_mono_ns() < until_ns)
		(void)pthread_cond_timedwait(&o->end, &o->lock, &until);
	go_on = !o->stopping;
	(void)pthread_mutex_unlock(&o->lock);
	return go_on;
}

void *agent_oom_watch(void *arg)
{
	struct agent_oom *o = arg;

	for (size_t round = 0; watch_wait(o, limits_next_ns(o)); round++)
		limits_watch(o, round);
	return NULL;
}

static bool make_wait(struct agent_oom *o)
{
	bool go_on;

	(void)pthread_mutex_lock(&o->lock);
	while (!o->stopping && !o->queue)
		(void)pthread_cond_wait(&o->news, &o->lock);
	go_on = !o->stopping;
	(void)pthread_mutex_unlock(&o->lock);
	return go_on;
}

void *agent_oom_make(void *arg)
{
	struct agent_oom *o = arg;

	while (make_wait(o))
		kills_finish(o);
	/* A process killed just before the end gets its snapshot, too. */
	kills_finish(o);
	return NULL;
}
