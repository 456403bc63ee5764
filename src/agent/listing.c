/*
 * src/agent/listing.c: source files, for the server.
 *
 * Its threads may open nothing and must not wait for a target. So one thread of ours has files read
 * by aides, one at a time, and whoever asks waits for it with a deadline. A request that nobody
 * waits for any more is dropped when its answer comes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/state.h"
#include "base/clock.h"
#include "proc/public.h"

/* Processes that are tried: one may be in a container, another not. */
#define LISTING_PROCESSES_MAX 8
#define LISTING_TURN_NS (NS_PER_SEC / 2)
#define LISTING_ANSWER_NS (3 * NS_PER_SEC)

struct listing {
	struct proc_id ids[LISTING_PROCESSES_MAX];
	size_t n_ids;
	char *path;
	struct buf text;
	int64_t modified_ns;
	int result;
	bool done;
	bool abandoned; /* nobody waits for it */
};

struct agent_listings {
	pthread_mutex_t lock;
	pthread_cond_t work; /* there is a request, or the end */
	pthread_cond_t news; /* it is done, or there is room for another */
	struct listing *request;
	bool ending;
	pthread_t thread;
};

static void listing_free(struct listing *l)
{
	if (!l)
		return;
	buf_release(&l->text);
	free(l->path);
	free(l);
}
DEFINE_CLEANUP(struct listing, listing_free)

/* Whether the answer of one process is that of the others. */
static bool listing_is_final(int r)
{
	return r != -EXDEV && r != -ESRCH && r != -EPERM && r != -ETIMEDOUT && r != -EBUSY;
}

static int listing_read_as(struct listing *l, const struct proc_id *id)
{
	int r = proc_public_read(id->pid, l->path, &l->text, &l->modified_ns);

	/* Whose root directory it was. */
	if (r == 0)
		r = proc_id_check(id, NULL);
	if (r < 0)
		buf_clear(&l->text);
	return r;
}

static void listing_read(struct listing *l)
{
	l->result = -ESRCH;
	for (size_t i = 0; i < l->n_ids && !listing_is_final(l->result); i++) {
		int r = listing_read_as(l, &l->ids[i]);

		/* That one has exited says less than any other reason. */
		if (r != -ESRCH || i == 0)
			l->result = r;
		if (r == -ETIMEDOUT)
			break;
	}
}

static void *listings_run(void *arg)
{
	struct agent_listings *all = arg;

	(void)pthread_mutex_lock(&all->lock);
	for (;;) {
		struct listing *l;

		while (!all->ending && !(all->request && !all->request->done))
			(void)pthread_cond_wait(&all->work, &all->lock);
		if (all->ending)
			break;
		l = all->request;
		(void)pthread_mutex_unlock(&all->lock);
		listing_read(l);
		(void)pthread_mutex_lock(&all->lock);
		l->done = true;
		if (l->abandoned) {
			listing_free(l);
			all->request = NULL;
		}
		(void)pthread_cond_broadcast(&all->news);
	}
	(void)pthread_mutex_unlock(&all->lock);
	return NULL;
}

static int cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int r = pthread_condattr_init(&attr);

	if (r == 0)
		r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	return r ? r : pthread_cond_init(cond, &attr);
}

int agent_listings_start(struct agent_listings **ret_listings, struct err *err)
{
	struct agent_listings *all = calloc(1, sizeof(*all));

	if (!all || pthread_mutex_init(&all->lock, NULL) || cond_init(&all->work) ||
	    cond_init(&all->news)) {
		free(all);
		return err_oom(err);
	}
	if (pthread_create(&all->thread, NULL, listings_run, all)) {
		free(all);
		return err_set(err, -EAGAIN, "cannot start a thread: %s", strerror(EAGAIN));
	}
	*ret_listings = all;
	return 0;
}

/* The server has stopped: nobody waits. */
void agent_listings_stop(struct agent_listings *all)
{
	if (!all)
		return;
	(void)pthread_mutex_lock(&all->lock);
	all->ending = true;
	(void)pthread_cond_broadcast(&all->work);
	(void)pthread_mutex_unlock(&all->lock);
	(void)pthread_join(all->thread, NULL);
	listing_free(all->request);
	(void)pthread_cond_destroy(&all->work);
	(void)pthread_cond_destroy(&all->news);
	(void)pthread_mutex_destroy(&all->lock);
	free(all);
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
				 .tv_nsec = (long)(ns % NS_PER_SEC)};
}

/* With the lock. -EBUSY, -ETIMEDOUT: the request is still ours; otherwise its result. */
static int listings_ask(struct agent_listings *all, struct listing **l)
{
	struct timespec turn = time_of(clock_mono_ns() + LISTING_TURN_NS), answer;
	struct listing *mine = *l;
	int r = 0;

	while (all->request && r == 0)
		r = pthread_cond_timedwait(&all->news, &all->lock, &turn);
	if (all->request)
		return -EBUSY;
	all->request = mine;
	(void)pthread_cond_signal(&all->work);
	answer = time_of(clock_mono_ns() + LISTING_ANSWER_NS);
	for (r = 0; !mine->done && r == 0;)
		r = pthread_cond_timedwait(&all->news, &all->lock, &answer);
	if (!mine->done) {
		mine->abandoned = true;
		*l = NULL; /* the thread's */
		return -ETIMEDOUT;
	}
	all->request = NULL;
	(void)pthread_cond_broadcast(&all->news);
	return mine->result;
}

static void listing_find_processes(struct agent *a, const char *service, struct listing *l)
{
	(void)pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->n_known && l->n_ids < LISTING_PROCESSES_MAX; i++) {
		const struct agent_slot *slot = a->known[i].slot;

		if (slot && !slot->gone && !slot->target.info.opted_out &&
		    strcmp(slot->target.info.service, service) == 0)
			l->ids[l->n_ids++] = slot->target.info.id;
	}
	(void)pthread_mutex_unlock(&a->lock);
}

static int listing_explain(int r, struct err *err)
{
	switch (r) {
	case 0:
		return 0;
	case -ENOENT:
	case -ENOTDIR:
		return err_set(err, r, "no such file on this machine, outside of containers");
	case -EACCES:
		return err_set(err, r, "not everybody on this machine may read it");
	case -EXDEV:
		return err_set(err, r, "the process sees another file by this name");
	case -EINVAL:
	case -ELOOP:
		return err_set(err, r, "not a regular file");
	case -E2BIG:
		return err_set(err, r, "larger than %zu MB", AGENT_LISTING_MAX >> 20);
	case -ESRCH:
		return err_set(err, r, "no process of this service is running");
	case -EPERM:
		return err_set(err, r, "sonde lacks the privileges to look for it");
	case -ETIMEDOUT:
	case -EBUSY:
		return err_set(err, r, "not responding");
	default:
		return err_set(err, r, "%s", strerror(-r));
	}
}

int agent_listing(struct agent *a, const char *service, const char *path, struct buf *text,
		  int64_t *ret_modified_ns, struct err *err)
{
	_cleanup_(listing_freep) struct listing *l = calloc(1, sizeof(*l));
	struct agent_listings *all = a->listings;
	int r;

	if (!l || !(l->path = strdup(path)))
		return err_oom(err);
	l->text = buf_with_max(AGENT_LISTING_MAX);
	listing_find_processes(a, service, l);
	(void)pthread_mutex_lock(&all->lock);
	r = listings_ask(all, &l);
	(void)pthread_mutex_unlock(&all->lock);
	if (r == 0)
		r = buf_append(text, l->text.data, l->text.len);
	if (r < 0)
		return listing_explain(r, err);
	*ret_modified_ns = l->modified_ns;
	return 0;
}
