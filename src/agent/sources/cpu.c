/* src/agent/sources/cpu.c: see cpu.h. */
#include "agent/sources/cpu.h"

#include <errno.h>
#include <math.h>
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
#include "profile/ops.h"

/* How long the sampler may take to notice the end of an interval. */
#define CPU_POLL_MS 250
/* Requests without an answer before it counts as stuck. */
#define CPU_STUCK_ASKS 3
/* With more than one of so many lost, and not just a few: who has none may have run. */
#define CPU_LOST_SHARE 20
#define CPU_LOST_MIN 20
#define CPU_STOP_SECONDS 3

struct agent_cpu {
	struct agent_cpu_config config;
	struct inbox *inbox;	       /* where profiles go */
	struct cpu_profiler *profiler; /* used by the thread only */
	pthread_t thread;
	pthread_mutex_t telling; /* held while calling into others */
	atomic_bool deaf;	 /* never call them again */

	pthread_mutex_t lock; /* protects everything below */
	pid_t tid;
	bool stopping;
	bool abandoned; /* the thread frees everything, */
	bool ended;	/* unless it has already ended */
	bool asked;
	bool collecting;      /* the previous request is in progress */
	unsigned int n_asked; /* requests since the last answer */
	uint64_t asked_ns;    /* time of the first of them */
	struct record_time when;
	struct agent_cpu_health health;
};

static uint64_t cpu_total(const struct profile *p)
{
	uint64_t total = 0;

	for (size_t i = 0; i < profile_n_samples(p); i++)
		total += (uint64_t)profile_sample_at(p, i)->values[1];
	return total;
}

/* The results of one collection, handed over as a whole. */
struct cpu_batch {
	struct delivery_list list;
	struct record_time when;
	struct record_parts parts; /* the intervals that it covers */
	uint64_t lost;		   /* over our memory limit */
	uint64_t n_taken;	   /* all samples of the time, with those lost, */
	uint64_t n_missed;	   /* and how many those are */
	uint64_t other;
	uint64_t most_other; /* of one process, */
	char culprit[160];   /* and which */
};

static struct record_time batch_time(const struct cpu_batch *batch, uint32_t part)
{
	return record_time_part(&batch->when, &batch->parts, part);
}

static int batch_deliver(struct cpu_batch *batch, const struct proc_info *info, uint32_t part,
			 struct record *record)
{
	struct delivery *d = delivery_new(record, batch_time(batch, part));

	if (!d)
		return -ENOMEM;
	d->info = *info;
	delivery_list_add(&batch->list, d);
	return 0;
}

static int batch_add_time(struct cpu_batch *batch, const struct proc_info *info, uint32_t part,
			  uint64_t ns)
{
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();
	int r = m ? metrics_add_counter(m, METRIC_PROCESS_CPU_TIME, NAN, (double)ns) : -ENOMEM;

	return r < 0 ? r : batch_deliver(batch, info, part, record_new_metrics(TAKE_PTR(m)));
}

/* Takes the profile. */
static int batch_add_part(struct cpu_batch *batch, const struct cpu_profile *whole, uint32_t part,
			  struct profile *profile)
{
	const struct record_profile payload = {
		.family = whole->offcpu ? "offcpu" : "cpu",
		.profile = profile,
	};
	uint64_t ns = whole->offcpu ? 0 : cpu_total(profile);
	int r = batch_deliver(batch, whole->info, part, record_new_profile(&payload));

	return r < 0 || whole->offcpu ? r : batch_add_time(batch, whole->info, part, ns);
}

static int batch_spread(struct cpu_batch *batch, const struct cpu_profile *whole)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < batch->parts.n; i++) {
		const struct profile_term term = {
			.profile = whole->profile, .factor = 1, .part = i, .parts = batch->parts.n};
		struct profile *profile = NULL;

		r = profile_merge(&term, 1, &profile, NULL);
		if (r < 0)
			break;
		profile_header(profile)->time_ns = batch_time(batch, i).time_ns;
		profile_header(profile)->duration_ns = batch_time(batch, i).duration_ns;
		if (profile_n_samples(profile) > 0)
			r = batch_add_part(batch, whole, i, profile);
		else
			profile_free(profile);
	}
	return r;
}

static int batch_add(void *context, struct cpu_profile *profile)
{
	struct cpu_batch *batch = context;
	int r;

	batch->lost += profile->lost;
	batch->other += profile->other;
	if (profile->other > batch->most_other) {
		batch->most_other = profile->other;
		(void)snprintf(batch->culprit, sizeof(batch->culprit), "%s (pid %d)",
			       profile->info->service, (int)profile->info->id.pid);
	}
	if (batch->parts.n == 1)
		return batch_add_part(batch, profile, 0, profile->profile);
	r = batch_spread(batch, profile);
	profile_free(profile->profile);
	return r;
}

static int covered_add(struct metrics *m, enum metric_id id, const char *source, double ns)
{
	const struct metric_point point = {.metric = &registry_metrics[id],
					   .attributes = {source},
					   .value = NAN,
					   .increase = ns};

	return metrics_add(m, &point);
}

/* covered_ns, spread_ns: 0 for none. */
static struct metrics *covered_metrics(const struct agent_cpu_config *config, double covered_ns,
				       double spread_ns)
{
	const char *const sources[] = {config->hz ? "cpu" : NULL,
				       config->offcpu_min_ns ? "offcpu" : NULL};
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();

	for (size_t i = 0; m && i < ARRAY_SIZE(sources); i++) {
		if (!sources[i])
			continue;
		if (covered_ns > 0 &&
		    covered_add(m, METRIC_SONDE_COVERED, sources[i], covered_ns) < 0)
			return NULL;
		if (spread_ns > 0 && covered_add(m, METRIC_SONDE_SPREAD, sources[i], spread_ns) < 0)
			return NULL;
	}
	return TAKE_PTR(m);
}

static void batch_add_losses(struct cpu_batch *batch, const struct cpu_losses *before,
			     const struct cpu_losses *after)
{
	batch->n_taken = after->samples - before->samples;
	batch->n_missed = batch->lost + after->lost_ring - before->lost_ring + after->lost_table -
			  before->lost_table;
}

static bool batch_is_sparse(const struct cpu_batch *batch)
{
	return batch->n_missed >= CPU_LOST_MIN && batch->n_missed > batch->n_taken / CPU_LOST_SHARE;
}

/* Last, so that an interval is never said to be covered before its samples are there. */
static void batch_add_covered(struct cpu_batch *batch, const struct agent_cpu_config *config)
{
	for (uint32_t i = 0; i < batch->parts.n; i++) {
		double ns = (double)batch_time(batch, i).duration_ns;
		struct metrics *m = covered_metrics(config, batch_is_sparse(batch) ? 0 : ns,
						    batch->parts.n > 1 ? ns : 0);

		if (m)
			(void)batch_deliver(batch, &config->self, i, record_new_metrics(m));
	}
}

/* Never call it once abandoned: the listener is gone. */
static void tell_exec(struct agent_cpu *c)
{
	(void)pthread_mutex_lock(&c->telling);
	if (!atomic_load(&c->deaf))
		c->config.on_exec(c->config.context);
	(void)pthread_mutex_unlock(&c->telling);
}

static void deliver(struct agent_cpu *c, struct delivery_list *list)
{
	(void)pthread_mutex_lock(&c->telling);
	if (!atomic_load(&c->deaf))
		inbox_put(c->inbox, list);
	(void)pthread_mutex_unlock(&c->telling);
	delivery_list_release(list);
}

/* "" if all is well. */
static void batch_trouble(const struct cpu_batch *batch, char *ret, size_t size)
{
	ret[0] = 0;
	if (batch->other)
		(void)snprintf(ret, size,
			       "%.120s adds new stacks faster than its budget allows; %llu samples "
			       "are shown as (other)",
			       batch->culprit, (unsigned long long)batch->other);
	else if (batch_is_sparse(batch))
		(void)snprintf(ret, size,
			       "%llu of %llu CPU samples were lost: they came faster "
			       "than they could be read",
			       (unsigned long long)batch->n_missed,
			       (unsigned long long)batch->n_taken);
}

static void collect(struct agent_cpu *c)
{
	struct cpu_batch batch = {};
	struct cpu_losses before, losses;
	struct err err = {};
	int r;

	delivery_list_init(&batch.list);
	(void)pthread_mutex_lock(&c->lock);
	before = c->health.losses;
	batch.when = c->when;
	batch.parts = record_time_divide(&batch.when, c->config.interval_ns);
	c->asked = false;
	c->collecting = true;
	(void)pthread_mutex_unlock(&c->lock);
	r = cpu_profiler_collect(c->profiler, batch_add, &batch, &err);
	cpu_profiler_losses(c->profiler, &losses);
	batch_add_losses(&batch, &before, &losses);
	if (r == 0)
		batch_add_covered(&batch, &c->config);
	(void)pthread_mutex_lock(&c->lock);
	c->n_asked = 0;
	c->health.collections++;
	c->health.losses = losses;
	c->health.lost_memory += batch.lost;
	c->health.other += batch.other;
	if (r == 0)
		batch_trouble(&batch, c->health.trouble, sizeof(c->health.trouble));
	else
		(void)snprintf(c->health.trouble, sizeof(c->health.trouble), "%.*s",
			       (int)sizeof(c->health.trouble) - 1, err.text);
	(void)pthread_mutex_unlock(&c->lock);
	deliver(c, &batch.list);
	(void)pthread_mutex_lock(&c->lock);
	c->collecting = false;
	(void)pthread_mutex_unlock(&c->lock);
}

static void hear_event(void *context, const struct cpu_event *event)
{
	struct agent_cpu *c = context;

	if (event->kind == CPU_EVENT_EXEC)
		tell_exec(c);
}

static void cpu_free(struct agent_cpu *c)
{
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

void agent_cpu_ask(struct agent_cpu *c, struct record_time when)
{
	(void)pthread_mutex_lock(&c->lock);
	/* The last request has not started yet: this interval joins it. */
	if (c->asked)
		when.duration_ns += c->when.duration_ns;
	c->when = when;
	c->asked = true;
	if (!c->n_asked++)
		c->asked_ns = clock_mono_ns();
	(void)pthread_mutex_unlock(&c->lock);
}

bool agent_cpu_is_idle(struct agent_cpu *c)
{
	bool idle;

	(void)pthread_mutex_lock(&c->lock);
	idle = !c->asked && !c->collecting;
	(void)pthread_mutex_unlock(&c->lock);
	return idle;
}

/* The kernel function the thread sleeps in; "" if unknown. */
static void where_it_sleeps(pid_t tid, char *ret, size_t size)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[128] = "";
	const char *name;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stack", (int)tid);
	f = fopen(path, "re");
	/* Innermost first: [<0>] function+0x1a/0x2b */
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
		       "no CPU profiles for %llu s: the sampler thread is stuck%s%s; everything "
		       "else continues",
		       (unsigned long long)((clock_mono_ns() - since_ns) / NS_PER_SEC),
		       where[0] ? " in the kernel, in " : "", where);
}

int agent_cpu_start(const struct agent_cpu_config *config, struct inbox *inbox,
		    struct agent_cpu **ret_cpu, struct err *err)
{
	const struct cpu_profiler_options options = {
		.sampler = {.hz = config->hz,
			    .kernel = true,
			    .offcpu_min_ns = config->offcpu_min_ns,
			    .events = true},
		.lines = config->lines,
		.budgets = true,
	};
	struct agent_cpu *c = calloc(1, sizeof(*c));
	int r;

	if (!c || pthread_mutex_init(&c->lock, NULL)) {
		free(c);
		return err_oom(err);
	}
	(void)pthread_mutex_init(&c->telling, NULL);
	c->config = *config;
	c->inbox = inbox;
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

static struct timespec stop_deadline(void)
{
	struct timespec until = {0};

	if (clock_gettime(CLOCK_REALTIME, &until) == 0)
		until.tv_sec += CPU_STOP_SECONDS;
	return until;
}

/* The thread hangs: it frees everything itself if it ever returns. */
static void abandon(struct agent_cpu *c)
{
	struct timespec until = stop_deadline();
	pthread_t thread = c->thread;
	bool ended;

	atomic_store(&c->deaf, true);
	/* It may be calling them right now, and must be back before they go. */
	if (pthread_mutex_timedlock(&c->telling, &until) == 0)
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
	struct timespec until;

	if (!c)
		return;
	(void)pthread_mutex_lock(&c->lock);
	c->stopping = true;
	(void)pthread_mutex_unlock(&c->lock);
	until = stop_deadline();
	if (pthread_timedjoin_np(c->thread, NULL, &until) == 0) {
		cpu_free(c);
		return;
	}
	abandon(c);
}

static bool cpu_source_is_wanted(const void *config)
{
	const struct agent_cpu_config *c = config;

	return c->hz || c->offcpu_min_ns;
}

static int cpu_source_start(const void *config, struct inbox *inbox, void **ret_state,
			    struct err *err)
{
	struct agent_cpu *c;
	int r = agent_cpu_start(config, inbox, &c, err);

	if (r == 0)
		*ret_state = c;
	return r;
}

static void cpu_source_ask(void *state, struct record_time when)
{
	agent_cpu_ask(state, when);
}

static bool cpu_source_is_idle(void *state)
{
	return agent_cpu_is_idle(state);
}

static bool cpu_source_stop(void *state)
{
	agent_cpu_stop(state);
	return true;
}

const struct source_ops agent_source_cpu = {
	.name = "cpu",
	.is_wanted = cpu_source_is_wanted,
	.start = cpu_source_start,
	.ask = cpu_source_ask,
	.is_idle = cpu_source_is_idle,
	.stop = cpu_source_stop,
};
