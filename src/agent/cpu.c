/* src/agent/cpu.c: see cpu.h. */
#include "agent/cpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cpu/profiler.h"

/* How long an interval's end may wait for the sampler to notice. */
#define CPU_POLL_MS 250

struct agent_cpu {
	struct agent_cpu_config config;
	struct cpu_profiler *profiler; /* of the thread */
	pthread_t thread;

	pthread_mutex_t lock; /* of all that follows */
	bool stopping;
	bool asked;
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
	c->health.losses = losses;
	c->health.lost_memory += batch.lost;
	(void)snprintf(c->health.trouble, sizeof(c->health.trouble), "%.*s",
		       (int)sizeof(c->health.trouble) - 1, r < 0 ? err.text : "");
	(void)pthread_mutex_unlock(&c->lock);
	c->config.on_news(c->config.context, false);
}

static void hear_event(void *context, const struct cpu_event *event)
{
	struct agent_cpu *c = context;

	if (event->kind == CPU_EVENT_EXEC)
		c->config.on_news(c->config.context, true);
}

static void *cpu_loop(void *arg)
{
	struct agent_cpu *c = arg;
	bool stopping = false;

	cpu_profiler_hurry();

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
	return NULL;
}

void agent_cpu_ask(struct agent_cpu *c, int64_t stamp_ns, int64_t duration_ns)
{
	(void)pthread_mutex_lock(&c->lock);
	/* Still busy with the last one: this interval goes with it. */
	c->duration_ns = c->asked ? c->duration_ns + duration_ns : duration_ns;
	c->stamp_ns = stamp_ns;
	c->asked = true;
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

void agent_cpu_health(struct agent_cpu *c, struct agent_cpu_health *ret_health)
{
	(void)pthread_mutex_lock(&c->lock);
	*ret_health = c->health;
	(void)pthread_mutex_unlock(&c->lock);
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
	free(c);
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

void agent_cpu_stop(struct agent_cpu *c)
{
	if (!c)
		return;
	(void)pthread_mutex_lock(&c->lock);
	c->stopping = true;
	(void)pthread_mutex_unlock(&c->lock);
	(void)pthread_join(c->thread, NULL);
	cpu_free(c);
}
