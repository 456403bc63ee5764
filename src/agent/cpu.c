/* src/agent/cpu.c: see cpu.h. */
#include "agent/cpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cpu/profiler.h"

/* How long an interval's end may wait for the sampler to notice. */
#define CPU_POLL_MS 250
/* Intervals without an answer until it counts as stuck. */
#define CPU_STUCK_ASKS 3
#define CPU_STOP_SECONDS 3

struct agent_cpu {
	struct agent_cpu_config config;
	struct cpu_profiler *profiler; /* of the thread */
	pthread_t thread;
	pthread_mutex_t telling; /* while on_news is called */
	atomic_bool deaf;	 /* who would be told is gone */

	pthread_mutex_t lock; /* of all that follows */
	pid_t tid;
	bool stopping;
	bool abandoned; /* the thread is to free it all, */
	bool ended;	/* unless it has ended already */
	bool asked;
	unsigned int n_asked; /* since the last answer */
	uint64_t asked_ns;    /* the first of them */
	int64_t stamp_ns;
	int64_t duration_ns;
	struct agent_cpu_reading *ready;
	struct agent_cpu_reading **ready_end;
	struct agent_cpu_health health;
};

void agent_cpu_reading_free(struct agent_cpu_reading *r)
{
	if (!r)
		return;
	profile_free(r->reading.profile);
	free(r);
}

static uint64_t cpu_total(const struct profile *p)
{
	uint64_t total = 0;

	for (size_t i = 0; i < profile_n_samples(p); i++)
		total += (uint64_t)profile_sample_at(p, i)->values[1];
	return total;
}

/* What one collection brings, until it is handed over in one piece. */
struct cpu_batch {
	struct agent_cpu_reading *first;
	struct agent_cpu_reading **end;
	int64_t stamp_ns;
	int64_t duration_ns;
	uint64_t lost;
};

static int batch_add(void *context, struct cpu_profile *profile)
{
	struct cpu_batch *batch = context;
	struct agent_cpu_reading *r = calloc(1, sizeof(*r));

	batch->lost += profile->lost;
	if (!r) {
		profile_free(profile->profile);
		return -ENOMEM;
	}
	r->target.info = *profile->info;
	r->family = profile->offcpu ? "offcpu" : "cpu";
	r->reading = (struct reading){.profile = profile->profile,
				      .time_ns = batch->stamp_ns,
				      .duration_ns = batch->duration_ns,
				      .lost = profile->lost};
	r->cpu_ns = profile->offcpu ? 0 : cpu_total(profile->profile);
	*batch->end = r;
	batch->end = &r->next;
	return 0;
}

static void tell_news(struct agent_cpu *c, bool is_exec)
{
	(void)pthread_mutex_lock(&c->telling);
	if (!atomic_load(&c->deaf))
		c->config.on_news(c->config.context, is_exec);
	(void)pthread_mutex_unlock(&c->telling);
}

static void collect(struct agent_cpu *c)
{
	struct cpu_batch batch = {.end = &batch.first};
	struct cpu_losses losses;
	struct err err = {};
	int r;

	(void)pthread_mutex_lock(&c->lock);
	batch.stamp_ns = c->stamp_ns;
	batch.duration_ns = c->duration_ns;
	(void)pthread_mutex_unlock(&c->lock);
	r = cpu_profiler_collect(c->profiler, batch_add, &batch, &err);
	cpu_profiler_losses(c->profiler, &losses);
	(void)pthread_mutex_lock(&c->lock);
	if (batch.first) {
		*c->ready_end = batch.first;
		c->ready_end = batch.end;
	}
	c->asked = false;
	c->n_asked = 0;
	c->health.losses = losses;
	c->health.lost_memory += batch.lost;
	(void)snprintf(c->health.trouble, sizeof(c->health.trouble), "%.*s",
		       (int)sizeof(c->health.trouble) - 1, r < 0 ? err.text : "");
	(void)pthread_mutex_unlock(&c->lock);
	tell_news(c, false);
}

static void hear_event(void *context, const struct cpu_event *event)
{
	struct agent_cpu *c = context;

	if (event->kind == CPU_EVENT_EXEC)
		tell_news(c, true);
}

void agent_cpu_readings_free(struct agent_cpu_reading *r)
{
	while (r) {
		struct agent_cpu_reading *next = r->next;

		agent_cpu_reading_free(r);
		r = next;
	}
}

static void cpu_free(struct agent_cpu *c)
{
	agent_cpu_readings_free(c->ready);
	cpu_profiler_close(c->profiler);
	(void)pthread_mutex_destroy(&c->lock);
	(void)pthread_mutex_destroy(&c->telling);
	free(c);
}

static void *cpu_loop(void *arg)
{
	struct agent_cpu *c = arg;
	bool stopping = false, abandoned;

	cpu_profiler_hurry();
	(void)pthread_mutex_lock(&c->lock);
	c->tid = gettid();
	(void)pthread_mutex_unlock(&c->lock);
	while (!stopping) {
		struct err err = {};
		bool asked;
		int r = cpu_profiler_poll(c->profiler, CPU_POLL_MS, hear_event, c, &err);

		(void)pthread_mutex_lock(&c->lock);
		stopping = c->stopping;
		asked = c->asked;
		if (r < 0)
			(void)snprintf(c->health.trouble, sizeof(c->health.trouble), "%.*s",
				       (int)sizeof(c->health.trouble) - 1, err.text);
		(void)pthread_mutex_unlock(&c->lock);
		if (asked)
			collect(c);
	}
	(void)pthread_mutex_lock(&c->lock);
	abandoned = c->abandoned;
	c->ended = true;
	(void)pthread_mutex_unlock(&c->lock);
	if (abandoned)
		cpu_free(c);
	return NULL;
}

void agent_cpu_ask(struct agent_cpu *c, int64_t stamp_ns, int64_t duration_ns)
{
	(void)pthread_mutex_lock(&c->lock);
	/* Still busy with the last one: this interval goes with it. */
	c->duration_ns = c->asked ? c->duration_ns + duration_ns : duration_ns;
	c->stamp_ns = stamp_ns;
	c->asked = true;
	if (!c->n_asked++)
		c->asked_ns = clock_mono_ns();
	(void)pthread_mutex_unlock(&c->lock);
}

struct agent_cpu_reading *agent_cpu_take(struct agent_cpu *c)
{
	struct agent_cpu_reading *list;

	(void)pthread_mutex_lock(&c->lock);
	list = TAKE_PTR(c->ready);
	c->ready_end = &c->ready;
	(void)pthread_mutex_unlock(&c->lock);
	return list;
}

bool agent_cpu_is_idle(struct agent_cpu *c)
{
	bool idle;

	(void)pthread_mutex_lock(&c->lock);
	idle = !c->asked && !c->ready;
	(void)pthread_mutex_unlock(&c->lock);
	return idle;
}

/* The function of the kernel in which the thread sleeps; "" where that is not told. */
static void where_it_sleeps(pid_t tid, char *ret, size_t size)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[128] = "";
	const char *name;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stack", (int)tid);
	f = fopen(path, "re");
	/* The innermost first: [<0>] function+0x1a/0x2b */
	name = f && fgets(line, sizeof(line), f) ? strstr(line, "] ") : NULL;
	(void)snprintf(ret, size, "%.*s", name ? (int)strcspn(name + 2, "+\n") : 0,
		       name ? name + 2 : "");
}

void agent_cpu_health(struct agent_cpu *c, struct agent_cpu_health *ret_health)
{
	bool stuck;
	uint64_t since_ns;
	char where[64];
	pid_t tid;

	(void)pthread_mutex_lock(&c->lock);
	*ret_health = c->health;
	stuck = c->n_asked >= CPU_STUCK_ASKS;
	since_ns = c->asked_ns;
	tid = c->tid;
	(void)pthread_mutex_unlock(&c->lock);
	if (!stuck)
		return;
	where_it_sleeps(tid, where, sizeof(where));
	(void)snprintf(ret_health->trouble, sizeof(ret_health->trouble),
		       "no CPU profiles for %llu s: the sampler's thread does not come "
		       "back%s%s; all else goes on",
		       (unsigned long long)((clock_mono_ns() - since_ns) / NS_PER_SEC),
		       where[0] ? ", the kernel has it wait in " : "", where);
}

int agent_cpu_start(const struct agent_cpu_config *config, struct agent_cpu **ret_cpu,
		    struct err *err)
{
	const struct cpu_profiler_options options = {
		.sampler = {.hz = config->hz,
			    .kernel = true,
			    .offcpu_min_ns = config->offcpu_min_ns,
			    .events = true},
		.lines = config->lines,
	};
	struct agent_cpu *c = calloc(1, sizeof(*c));
	int r;

	if (!c || pthread_mutex_init(&c->lock, NULL)) {
		free(c);
		return err_oom(err);
	}
	(void)pthread_mutex_init(&c->telling, NULL);
	c->config = *config;
	c->ready_end = &c->ready;
	r = cpu_profiler_open(&options, &c->profiler, err);
	if (r == 0 && pthread_create(&c->thread, NULL, cpu_loop, c))
		r = err_set(err, -EAGAIN, "cannot start a thread: %s", strerror(EAGAIN));
	if (r < 0) {
		cpu_free(c);
		return r;
	}
	*ret_cpu = c;
	return 0;
}

/* The thread hangs: it frees everything itself, if ever it comes back. */
static void abandon(struct agent_cpu *c, const struct timespec *until)
{
	pthread_t thread = c->thread;
	bool ended;

	atomic_store(&c->deaf, true);
	if (pthread_mutex_timedlock(&c->telling, until) == 0)
		(void)pthread_mutex_unlock(&c->telling);
	(void)pthread_mutex_lock(&c->lock);
	ended = c->ended;
	c->abandoned = true;
	(void)pthread_mutex_unlock(&c->lock);
	if (!ended) {
		(void)pthread_detach(thread);
		return;
	}
	(void)pthread_join(thread, NULL);
	cpu_free(c);
}

void agent_cpu_stop(struct agent_cpu *c)
{
	struct timespec until = {0};

	if (!c)
		return;
	(void)pthread_mutex_lock(&c->lock);
	c->stopping = true;
	(void)pthread_mutex_unlock(&c->lock);
	if (clock_gettime(CLOCK_REALTIME, &until) == 0)
		until.tv_sec += CPU_STOP_SECONDS;
	if (pthread_timedjoin_np(c->thread, NULL, &until) == 0) {
		cpu_free(c);
		return;
	}
	abandon(c, &until);
}
