/* src/server/watchdog.c: see watchdog.h. */
#include "server/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"

struct server_watchdog_entry {
	struct server_watchdog_entry *next;
	struct server_watchdog_entry *previous;
	int socket;
	uint64_t deadline_ns;
};

struct server_watchdog {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	bool stop;
	struct server_watchdog_entry *entries;
};

static uint64_t deadline_after(uint64_t timeout_ns)
{
	uint64_t deadline;

	if (__builtin_add_overflow(clock_mono_ns(), timeout_ns, &deadline))
		return UINT64_MAX;
	return deadline;
}

static void watchdog_look(struct server_watchdog *w)
{
	uint64_t now = clock_mono_ns();

	for (struct server_watchdog_entry *e = w->entries; e; e = e->next)
		if (e->deadline_ns <= now) {
			/* The library then sees the end of the stream and cleans up. */
			(void)shutdown(e->socket, SHUT_RDWR);
			e->deadline_ns = UINT64_MAX;
		}
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

int server_watchdog_start(struct server_watchdog **ret_watchdog, struct err *err)
{
	struct server_watchdog *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int r;

	if (!w)
		return err_oom(err);
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&w->stopped, &attr);
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
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

struct server_watchdog_entry *server_watchdog_add(struct server_watchdog *w, int socket,
						  uint64_t timeout_ns)
{
	struct server_watchdog_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->socket = socket;
	e->deadline_ns = deadline_after(timeout_ns);
	(void)pthread_mutex_lock(&w->lock);
	e->next = w->entries;
	if (e->next)
		e->next->previous = e;
	else
		(void)pthread_cond_signal(&w->stopped);
	w->entries = e;
	(void)pthread_mutex_unlock(&w->lock);
	return e;
}

void server_watchdog_set(struct server_watchdog *w, struct server_watchdog_entry *e,
			 uint64_t timeout_ns)
{
	(void)pthread_mutex_lock(&w->lock);
	e->deadline_ns = deadline_after(timeout_ns);
	(void)pthread_mutex_unlock(&w->lock);
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
	(void)pthread_mutex_unlock(&w->lock);
	free(e);
}
