/*
 * src/agent/sources/java_programs.c: see java_programs.h.
 *
 * One lock protects the list and says which thread works on which program; it is never held while
 * talking to a JVM. Each program has a second lock for what its readers use, held while they read.
 */
#include "agent/sources/java_programs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* The minimum, however short the interval is. */
#define JAVA_KEEP_MIN_NS (1 * NS_PER_SEC)
/* Retry a JVM that is still starting, or busy, after this time, with growing pauses. */
#define JAVA_RETRY_NS (5 * NS_PER_SEC)
#define JAVA_RETRY_MAX_NS (300 * NS_PER_SEC)
#define JAVA_NEVER UINT64_MAX
/* Thread and class names of a program over days: bounded; the excess is counted. */
#define JAVA_PROFILE_MAX ((size_t)32 << 20)

struct agent_java_program {
	struct agent_java *java;
	struct agent_java_program *next;
	struct proc_id id;
	/* Protected by the lock of the list. */
	unsigned int refs;
	bool busy; /* a thread is working on it */
	uint64_t due_ns;
	unsigned int failures; /* in a row */
	uint64_t map_due_ns;
	unsigned int map_failures;
	bool has_map;
	struct agent_java_program_state state;
	/* Used only by the thread working on it. */
	struct java_perfmap *map;
	/* Protected by this lock. */
	pthread_mutex_t reading;
	struct java_collect *collect;
};

struct agent_java {
	char *state_dir;
	char *async_library;
	uint64_t interval_ns;
	bool no_maps;
	const struct agent_java_ops *ops;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct agent_java_program *programs;
	size_t n_programs;
	pthread_t threads[AGENT_JAVA_THREADS];
	size_t n_threads;
	pthread_t restorer;
	bool restores;	  /* that thread must be joined */
	size_t n_running; /* of all threads */
	bool stopping;
};

static int java_restore(const char *state_dir, struct err *err)
{
	(void)java_perfmaps_restore(state_dir, NULL);
	return java_recordings_restore(state_dir, err);
}

const struct agent_java_ops agent_java_ops_jvm = {
	.restore = java_restore,
	.start = java_collect_start,
	.keep = java_collect_keep,
	.read = java_collect_read,
	.stop = java_collect_stop,
	.free = java_collect_free,
	.map_start = java_perfmap_start,
	.map_keep = java_perfmap_keep,
	.map_free = java_perfmap_free,
};

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
				 .tv_nsec = (long)(ns % NS_PER_SEC)};
}

/* No reader is left, or recording must stop. */
static bool program_ends(const struct agent_java_program *p)
{
	return p->refs == 0 || p->java->stopping;
}

static uint64_t program_due(const struct agent_java_program *p)
{
	return MIN(p->due_ns, p->map_due_ns);
}

/* The one due longest; *ret_next is when the next one is due. */
static struct agent_java_program *java_find_due(struct agent_java *j, uint64_t now,
						uint64_t *ret_next)
{
	struct agent_java_program *found = NULL;

	*ret_next = JAVA_NEVER;
	for (struct agent_java_program *p = j->programs; p; p = p->next) {
		/* End these at once, and only once if their readers remain. */
		if (program_ends(p)) {
			p->due_ns = p->refs && !p->state.records && !p->has_map ? JAVA_NEVER : 0;
			p->map_due_ns = JAVA_NEVER;
		}
		if (p->busy)
			continue;
		if (program_due(p) <= now && (!found || program_due(p) < program_due(found)))
			found = p;
		*ret_next = MIN(*ret_next, program_due(p));
	}
	return found;
}

static void java_unlink(struct agent_java *j, const struct agent_java_program *p)
{
	struct agent_java_program **at = &j->programs;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	j->n_programs--;
}

static void program_replace(struct agent_java_program *p, struct java_collect *collect)
{
	struct java_collect *before;

	(void)pthread_mutex_lock(&p->reading);
	before = p->collect;
	p->collect = collect;
	(void)pthread_mutex_unlock(&p->reading);
	if (before)
		p->java->ops->free(before);
}

static uint64_t retry_ns(unsigned int failures)
{
	return MIN(JAVA_RETRY_NS << MIN(failures - 1, 10U), JAVA_RETRY_MAX_NS);
}

/* Stores the outcome for the next attempt. With the lock held. */
static void program_settle(struct agent_java_program *p, int code, const struct err *err)
{
	uint64_t wait = p->java->interval_ns;

	p->failures = code < 0 ? p->failures + 1 : 0;
	p->state.code = code;
	p->state.cause = code == 0 ? ERR_CAUSE_OTHER : err_cause_of(code, err);
	(void)snprintf(p->state.remedy, sizeof(p->state.remedy), "%s",
		       code == 0 ? "" : err->remedy);
	(void)snprintf(p->state.why, sizeof(p->state.why), "%.255s",
		       code == 0      ? ""
		       : err->text[0] ? err->text
				      : strerror(-code));
	if (code < 0)
		wait = retry_ns(p->failures);
	p->due_ns = clock_mono_ns() + MAX(wait, JAVA_KEEP_MIN_NS);
	/* Never retry a JVM that cannot record: each attempt would leave a trace in it. */
	if (code < 0 && !p->state.records && code != -EAGAIN && code != -EBUSY && code != -ENOENT &&
	    code != -ENOMEM)
		p->due_ns = JAVA_NEVER;
}

/* Called without the lock. */
static int program_start(struct agent_java_program *p, struct err *err)
{
	const struct java_collect_options options = {
		.recording = {.state_dir = p->java->state_dir,
			      .cpu_time = true,
			      .totals_ns = MAX(p->java->interval_ns / 2, NS_PER_SEC)},
		.profile = {.label_threads = true,
			    .fold_threads = true,
			    .max_bytes = JAVA_PROFILE_MAX},
		.interval_ns = p->java->interval_ns,
		.async_library = p->java->async_library,
	};
	struct java_collect *c = NULL;
	int r = p->java->ops->start(&p->id, &options, &c, err);

	if (r == 0)
		program_replace(p, c);
	return r;
}

/* -EBUSY, -ENOENT, -ESRCH: the recording has ended. Its remaining data is read first. */
static int program_keep(struct agent_java_program *p, struct err *err)
{
	int r = p->java->ops->keep(p->collect, err);

	if (r != -EBUSY && r != -ENOENT && r != -ESRCH)
		return r;
	(void)pthread_mutex_lock(&p->reading);
	(void)p->java->ops->read(p->collect, NULL);
	(void)pthread_mutex_unlock(&p->reading);
	(void)p->java->ops->stop(p->collect, NULL);
	return r;
}

/* After a failed attempt, or if its place is taken, never ask again. */
static int program_map(struct agent_java_program *p, struct err *err)
{
	const struct java_perfmap_options options = {.state_dir = p->java->state_dir};
	int r;

	if (!p->map)
		return p->java->ops->map_start(&p->id, &options, &p->map, err);
	r = p->java->ops->map_keep(p->map, err);
	if (r == -ESRCH || r == -ETIMEDOUT || r == -EPERM)
		p->java->ops->map_free(TAKE_PTR(p->map));
	return r;
}

static void program_end_map(struct agent_java_program *p)
{
	if (p->map)
		p->java->ops->map_free(TAKE_PTR(p->map));
}

/* With the lock held. */
static void program_settle_map(struct agent_java_program *p, int code, const struct err *err)
{
	uint64_t wait = p->java->interval_ns;
	char line[ERR_LINE_MAX];
	bool again = p->has_map || code == -EAGAIN || code == -EBUSY || code == -ENOMEM;

	p->map_failures = code < 0 ? p->map_failures + 1 : 0;
	(void)snprintf(p->state.map_why, sizeof(p->state.map_why), "%.255s",
		       code < 0 ? err_describe(err, code, line) : "");
	if (code < 0)
		wait = retry_ns(p->map_failures);
	p->map_due_ns = again ? clock_mono_ns() + MAX(wait, JAVA_KEEP_MIN_NS) : JAVA_NEVER;
}

static void program_free(struct agent_java_program *p)
{
	program_end_map(p);
	if (p->collect)
		p->java->ops->free(p->collect);
	(void)pthread_mutex_destroy(&p->reading);
	free(p);
}

/* With the lock held, but released while talking to the JVM. */
static void program_work(struct agent_java *j, struct agent_java_program *p)
{
	bool ends = program_ends(p), records = p->state.records;
	uint64_t now = clock_mono_ns();
	bool is_due = !ends && p->due_ns <= now, map_is_due = !ends && p->map_due_ns <= now;
	struct err err = {0}, map_err = {0};
	int r = 0, map_r = 0;

	p->busy = true;
	(void)pthread_mutex_unlock(&j->lock);
	if (ends && records)
		(void)j->ops->stop(p->collect, &err);
	if (ends)
		program_end_map(p);
	if (is_due)
		r = records ? program_keep(p, &err) : program_start(p, &err);
	if (map_is_due)
		map_r = program_map(p, &map_err);
	(void)pthread_mutex_lock(&j->lock);
	p->busy = false;
	p->has_map = p->map != NULL;
	if (ends)
		p->state.records = false;
	if (is_due) {
		p->state.records = records ? r != -EBUSY && r != -ENOENT && r != -ESRCH : r == 0;
		p->state.began += !records && r == 0;
		program_settle(p, r, &err);
	}
	if (map_is_due)
		program_settle_map(p, map_r, &map_err);
	if (ends && p->refs == 0) {
		java_unlink(j, p);
		program_free(p);
	}
	(void)pthread_cond_broadcast(&j->changed);
}

static bool java_has_recordings(const struct agent_java *j)
{
	for (const struct agent_java_program *p = j->programs; p; p = p->next)
		if (p->busy || p->state.records || p->has_map)
			return true;
	return false;
}

static void *java_thread(void *arg)
{
	struct agent_java *j = arg;

	(void)pthread_mutex_lock(&j->lock);
	while (!j->stopping || java_has_recordings(j)) {
		uint64_t next;
		struct agent_java_program *p = java_find_due(j, clock_mono_ns(), &next);
		struct timespec until;

		if (p) {
			program_work(j, p);
		} else if (next == JAVA_NEVER) {
			(void)pthread_cond_wait(&j->changed, &j->lock);
		} else {
			until = timespec_of(next);
			(void)pthread_cond_clockwait(&j->changed, &j->lock, CLOCK_MONOTONIC,
						     &until);
		}
	}
	j->n_running--;
	(void)pthread_cond_broadcast(&j->changed);
	(void)pthread_mutex_unlock(&j->lock);
	return NULL;
}

static void *java_restorer(void *arg)
{
	struct agent_java *j = arg;

	(void)j->ops->restore(j->state_dir, NULL);
	(void)pthread_mutex_lock(&j->lock);
	j->n_running--;
	(void)pthread_cond_broadcast(&j->changed);
	(void)pthread_mutex_unlock(&j->lock);
	return NULL;
}

static void java_join(struct agent_java *j)
{
	if (j->restores)
		(void)pthread_join(j->restorer, NULL);
	j->restores = false;
	for (size_t i = 0; i < j->n_threads; i++)
		(void)pthread_join(j->threads[i], NULL);
	j->n_threads = 0;
}

/* False if some readers have not returned: what they use stays. */
static bool java_free(struct agent_java *j)
{
	while (j->programs && j->programs->refs == 0) {
		struct agent_java_program *p = j->programs;

		java_unlink(j, p);
		program_free(p);
	}
	if (j->programs)
		return false;
	(void)pthread_cond_destroy(&j->changed);
	(void)pthread_mutex_destroy(&j->lock);
	free(j->async_library);
	free(j->state_dir);
	free(j);
	return true;
}

int agent_java_start(const struct agent_java_config *config, struct agent_java **ret_java,
		     struct err *err)
{
	struct agent_java *j = calloc(1, sizeof(*j));

	if (!j)
		return err_oom(err);
	j->interval_ns = config->interval_ns;
	j->no_maps = config->no_maps;
	j->ops = config->ops;
	j->state_dir = strdup(config->state_dir);
	if (config->async_library)
		j->async_library = strdup(config->async_library);
	if (!j->state_dir || (config->async_library && !j->async_library) ||
	    pthread_mutex_init(&j->lock, NULL) || pthread_cond_init(&j->changed, NULL)) {
		free(j->async_library);
		free(j->state_dir);
		free(j);
		return err_oom(err);
	}
	j->n_running = 1;
	if (pthread_create(&j->restorer, NULL, java_restorer, j)) {
		(void)java_free(j);
		return err_set(err, -EAGAIN, "cannot start a thread: %s", strerror(EAGAIN));
	}
	j->restores = true;
	*ret_java = j;
	return 0;
}

bool agent_java_stop(struct agent_java *j, uint64_t until_ns)
{
	struct timespec until = timespec_of(until_ns);
	bool ended;

	if (!j)
		return true;
	(void)pthread_mutex_lock(&j->lock);
	j->stopping = true;
	(void)pthread_cond_broadcast(&j->changed);
	while (j->n_running &&
	       pthread_cond_clockwait(&j->changed, &j->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
	ended = j->n_running == 0;
	(void)pthread_mutex_unlock(&j->lock);
	if (!ended)
		return false;
	java_join(j);
	return java_free(j);
}

/* One thread per program, up to a limit. With the lock held. */
static int java_grow(struct agent_java *j)
{
	if (j->n_threads >= MIN(j->n_programs, (size_t)AGENT_JAVA_THREADS))
		return 0;
	if (pthread_create(&j->threads[j->n_threads], NULL, java_thread, j))
		return j->n_threads ? 0 : -EAGAIN;
	j->n_threads++;
	j->n_running++;
	return 0;
}

int agent_java_program_open(struct agent_java *j, const struct proc_id *id,
			    struct agent_java_program **ret_program, struct err *err)
{
	struct agent_java_program *p = calloc(1, sizeof(*p));
	int r;

	if (!p || pthread_mutex_init(&p->reading, NULL)) {
		free(p);
		return err_oom(err);
	}
	p->java = j;
	p->id = *id;
	p->refs = 1;
	p->map_due_ns = j->ops->map_start && !j->no_maps ? 0 : JAVA_NEVER;
	(void)pthread_mutex_lock(&j->lock);
	p->next = j->programs;
	j->programs = p;
	j->n_programs++;
	r = java_grow(j);
	if (r < 0)
		java_unlink(j, p);
	(void)pthread_cond_broadcast(&j->changed);
	(void)pthread_mutex_unlock(&j->lock);
	if (r < 0) {
		program_free(p);
		return err_set(err, r, "cannot start a thread: %s", strerror(-r));
	}
	*ret_program = p;
	return 0;
}

struct agent_java_program *agent_java_program_ref(struct agent_java_program *p)
{
	(void)pthread_mutex_lock(&p->java->lock);
	p->refs++;
	(void)pthread_mutex_unlock(&p->java->lock);
	return p;
}

void agent_java_program_unref(struct agent_java_program *p)
{
	struct agent_java *j;

	if (!p)
		return;
	j = p->java;
	(void)pthread_mutex_lock(&j->lock);
	p->refs--;
	(void)pthread_cond_broadcast(&j->changed);
	(void)pthread_mutex_unlock(&j->lock);
}

struct java_collect *agent_java_program_lock(struct agent_java_program *p)
{
	(void)pthread_mutex_lock(&p->reading);
	return p->collect;
}

void agent_java_program_unlock(struct agent_java_program *p)
{
	(void)pthread_mutex_unlock(&p->reading);
}

void agent_java_program_state(struct agent_java_program *p,
			      struct agent_java_program_state *ret_state)
{
	(void)pthread_mutex_lock(&p->java->lock);
	*ret_state = p->state;
	(void)pthread_mutex_unlock(&p->java->lock);
}
