/* src/server/watchdog.c: see watchdog.h. */
#include "server/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* From this share of the maximum on, clients must hurry. */
#define WATCHDOG_CROWDED(max) ((max) / 8 * 7)

struct server_watchdog_entry {
	struct server_watchdog_entry *next;
	struct server_watchdog_entry *previous;
	int socket;
	uid_t uid;
	enum server_watchdog_state state;
	uint64_t since_ns; /* in this state */
	size_t held;	   /* bytes of its response */
	bool closing;	   /* shut down; the library will remove it */
};

struct server_watchdog {
	struct server_watchdog_config config;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	pthread_cond_t turn; /* somebody waits for one, and it may have come */
	bool stop;
	struct server_watchdog_entry *entries;
	size_t len; /* without those that are closing */
};

static void entry_close(struct server_watchdog *w, struct server_watchdog_entry *e)
{
	/* The library then sees the end of the stream and cleans up. */
	(void)shutdown(e->socket, SHUT_RDWR);
	e->closing = true;
	w->len--;
	(void)pthread_cond_broadcast(&w->turn);
}

static uint64_t entry_timeout(const struct server_watchdog *w,
			      const struct server_watchdog_entry *e)
{
	bool crowded = w->len > WATCHDOG_CROWDED(w->config.max);

	switch (e->state) {
	case SERVER_READING:
		return crowded ? MIN(w->config.hurried_ns, w->config.request_ns)
			       : w->config.request_ns;
	case SERVER_ANSWERING:
		return w->config.answer_ns;
	case SERVER_WAITING:
	case SERVER_WORKING:
		break;
	}
	return SERVER_WATCHDOG_NEVER;
}

static void watchdog_look(struct server_watchdog *w)
{
	struct server_watchdog_entry *e = w->entries;
	uint64_t now = clock_mono_ns();

	/* Who came first goes first: there may then be room for the others. */
	while (e && e->next)
		e = e->next;
	for (; e; e = e->previous)
		if (!e->closing && now - e->since_ns >= entry_timeout(w, e))
			entry_close(w, e);
}

static size_t count_of(const struct server_watchdog *w, uid_t uid)
{
	size_t n = 0;

	for (const struct server_watchdog_entry *e = w->entries; e; e = e->next)
		n += !e->closing && e->uid == uid;
	return n;
}

/*
 * Who waits to send goes before who waits for us, and who waits to read; what we work on last; and
 * the oldest first.
 */
static bool goes_first(const struct server_watchdog_entry *e,
		       const struct server_watchdog_entry *other)
{
	static const int order[] = {[SERVER_READING] = 0,
				    [SERVER_WAITING] = 1,
				    [SERVER_ANSWERING] = 2,
				    [SERVER_WORKING] = 3};

	if (!other || e->state != other->state)
		return !other || order[e->state] < order[other->state];
	return e->since_ns < other->since_ns;
}

/*
 * Who goes for the new one: itself only where nobody else of its user, or of a greedier one, can.
 * What we work on can go for others: requests sent ahead would have us work on all connections.
 */
static struct server_watchdog_entry *choose_victim(const struct server_watchdog *w,
						   struct server_watchdog_entry *new_one)
{
	struct server_watchdog_entry *victim = NULL;
	size_t most = 0;

	for (struct server_watchdog_entry *e = w->entries; e; e = e->next) {
		size_t n;

		if (e == new_one || e->closing ||
		    (e->state == SERVER_WORKING && e->uid == new_one->uid))
			continue;
		n = victim && e->uid == victim->uid ? most : count_of(w, e->uid);
		if (n > most || (n == most && goes_first(e, victim))) {
			victim = e;
			most = n;
		}
	}
	return victim && count_of(w, new_one->uid) <= most ? victim : new_one;
}

static void *watchdog_run(void *arg)
{
	struct server_watchdog *w = arg;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		uint64_t next_ns = clock_mono_ns() + NS_PER_SEC;
		struct timespec next = {.tv_sec = (time_t)(next_ns / NS_PER_SEC),
					.tv_nsec = (long)(next_ns % NS_PER_SEC)};

		/* Without connections there is nothing to wake up for. */
		if (w->entries)
			(void)pthread_cond_timedwait(&w->stopped, &w->lock, &next);
		else
			(void)pthread_cond_wait(&w->stopped, &w->lock);
		watchdog_look(w);
	}
	(void)pthread_mutex_unlock(&w->lock);
	return NULL;
}

int server_watchdog_start(const struct server_watchdog_config *config,
			  struct server_watchdog **ret_watchdog, struct err *err)
{
	struct server_watchdog *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int r;

	if (!w)
		return err_oom(err);
	w->config = *config;
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&w->stopped, &attr);
	(void)pthread_cond_init(&w->turn, NULL);
	(void)pthread_condattr_destroy(&attr);
	r = pthread_create(&w->thread, NULL, watchdog_run, w);
	if (r != 0) {
		free(w);
		return err_set(err, -r, "cannot start a thread: %s", strerror(r));
	}
	*ret_watchdog = w;
	return 0;
}

void server_watchdog_stop(struct server_watchdog *w)
{
	if (!w)
		return;
	(void)pthread_mutex_lock(&w->lock);
	w->stop = true;
	(void)pthread_cond_signal(&w->stopped);
	(void)pthread_mutex_unlock(&w->lock);
	(void)pthread_join(w->thread, NULL);
	(void)pthread_cond_destroy(&w->stopped);
	(void)pthread_cond_destroy(&w->turn);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

struct server_watchdog_entry *server_watchdog_add(struct server_watchdog *w, int socket, uid_t uid)
{
	struct server_watchdog_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->socket = socket;
	e->uid = uid;
	e->since_ns = clock_mono_ns();
	(void)pthread_mutex_lock(&w->lock);
	e->next = w->entries;
	if (e->next)
		e->next->previous = e;
	else
		(void)pthread_cond_signal(&w->stopped);
	w->entries = e;
	w->len++;
	if (w->len > w->config.max)
		entry_close(w, choose_victim(w, e));
	(void)pthread_mutex_unlock(&w->lock);
	return e;
}

static void entry_set(struct server_watchdog *w, struct server_watchdog_entry *e,
		      enum server_watchdog_state state)
{
	if (e->state == SERVER_WORKING)
		(void)pthread_cond_broadcast(&w->turn);
	e->state = state;
	e->since_ns = clock_mono_ns();
}

static bool has_turn(const struct server_watchdog *w, uid_t uid)
{
	size_t n = 0;

	for (const struct server_watchdog_entry *e = w->entries; e; e = e->next)
		n += e->state == SERVER_WORKING && e->uid == uid;
	return n < w->config.max_working;
}

bool server_watchdog_begin_work(struct server_watchdog *w, struct server_watchdog_entry *e)
{
	bool open;

	(void)pthread_mutex_lock(&w->lock);
	entry_set(w, e, SERVER_WAITING);
	while (!e->closing && !has_turn(w, e->uid))
		(void)pthread_cond_wait(&w->turn, &w->lock);
	open = !e->closing;
	if (open)
		entry_set(w, e, SERVER_WORKING);
	(void)pthread_mutex_unlock(&w->lock);
	return open;
}

void server_watchdog_set(struct server_watchdog *w, struct server_watchdog_entry *e,
			 enum server_watchdog_state state)
{
	(void)pthread_mutex_lock(&w->lock);
	entry_set(w, e, state);
	(void)pthread_mutex_unlock(&w->lock);
}

void server_watchdog_hold(struct server_watchdog *w, struct server_watchdog_entry *e, size_t bytes)
{
	(void)pthread_mutex_lock(&w->lock);
	e->held = bytes;
	(void)pthread_mutex_unlock(&w->lock);
}

size_t server_watchdog_held(struct server_watchdog *w, const struct server_watchdog_entry *of)
{
	size_t held = 0;

	(void)pthread_mutex_lock(&w->lock);
	for (const struct server_watchdog_entry *e = w->entries; e; e = e->next)
		held += e->uid == of->uid ? e->held : 0;
	(void)pthread_mutex_unlock(&w->lock);
	return held;
}

void server_watchdog_remove(struct server_watchdog *w, struct server_watchdog_entry *e)
{
	(void)pthread_mutex_lock(&w->lock);
	if (e->next)
		e->next->previous = e->previous;
	if (e->previous)
		e->previous->next = e->next;
	else
		w->entries = e->next;
	w->len -= !e->closing;
	(void)pthread_mutex_unlock(&w->lock);
	free(e);
}
