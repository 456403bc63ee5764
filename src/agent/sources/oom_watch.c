/*
 * src/agent/sources/oom_watch.c: makes pictures of what was read, and looks how near limits are.
 *
 * These are two threads: who is near a limit is alive, and a hostile one can make a reader hang, as
 * in the pool. Pictures of those who were killed are made all the same.
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
/* Who will be near its limit before that is looked at after half the time, but not all the time. */
#define WATCH_MIN_NS (20 * NS_PER_MS)
/* Processes are moved, and limits changed, but not often. */
#define WATCH_LOOK_UP_NS (30 * NS_PER_SEC)
/* What is read stays in the reader: that is the picture when it is killed. This one is to keep. */
#define WATCH_WRITE_NS (60 * NS_PER_SEC)
/* Programs that are read in one round because their limits are near. */
#define WATCH_MAX_NEAR 64

/* Takes the record. Does not wait for the environment to be read: its target is known. */
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

/* Takes the profile. NULL without memory. */
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
 * Builds the snapshot of the last read, and delivers it with the event; then that of the
 * goroutines, which has the same time. Having none is no loss.
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

/* Whoever is in a group that has a limit is looked at every second; for others that is all. */
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

/* True when it was read. */
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

/* All that are due, each counted. */
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

/* Where more are near than can be read, it is not always the same ones that go without. */
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

/* When the next look is due; those that come until then wait for it. */
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

/* False at the end. */
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
	/* Who was killed just before the end has its picture, too. */
	kills_finish(o);
	return NULL;
}
