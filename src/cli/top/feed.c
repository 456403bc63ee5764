/* src/cli/top/feed.c: see feed.h. */
#include "cli/top/feed.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"

/* The runtime of a target not examined yet. */
#define NOT_LOOKED "unknown"
/* The sampler's name among a target's readers. */
#define CPU_READER "cpu"
/*
 * The samples of an interval arrive together, some time after its end: how long to wait for them,
 * and for how long no more must arrive before they are complete.
 */
#define CPU_PATIENCE_NS NS_PER_SEC
#define CPU_SETTLE_NS (50 * NS_PER_MS)
/* No samples for this many intervals: nothing is running. */
#define CPU_IDLE_INTERVALS 3

struct top_feed {
	struct top_feed_config config;
	struct agent *agent;
	bool samples;	 /* the CPUs */
	int timer;	 /* expires when the interval can be shown */
	uint64_t cpu_ns; /* our CPU time at the last measurement, and when that was */
	uint64_t mono_ns;
	double cpu_share;
	bool seen; /* there were processes */
	uint64_t started_ns;
	uint64_t started_ticks; /* the same in the ticks of /proc/PID/stat */

	/* The agent's thread writes, ours reads. */
	pthread_mutex_t lock;
	struct top_model *model;
	uint64_t intervals;
	bool due;      /* an interval has ended and was not shown yet */
	bool cpu_came; /* samples so far; and whether they were included in the last table */
	bool cpu_shown;
	unsigned int cpu_idle; /* intervals without samples */
	struct err failed;     /* the last failed write of this interval */
};

static bool feed_takes(const struct top_feed *f, const char *service)
{
	return !f->config.service || strcmp(f->config.service, service) == 0;
}

static bool feed_takes_id(const struct top_feed *f, const struct proc_id *id)
{
	for (size_t i = 0; i < f->config.n_ids; i++)
		if (f->config.ids[i].pid == id->pid &&
		    f->config.ids[i].start_ticks == id->start_ticks)
			return true;
	return !f->config.n_ids;
}

static void feed_expire(const struct top_feed *f, uint64_t in_ns)
{
	const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(in_ns / NS_PER_SEC),
						     .tv_nsec = (long)(in_ns % NS_PER_SEC)}};

	/* Cannot fail: the descriptor and the time are valid. */
	(void)timerfd_settime(f->timer, 0, &when, NULL);
}

/* With the lock held. The sampler reports all processes, wanted or not. */
static int feed_write_cpu(struct top_feed *f, const struct top_subject *who,
			  const struct record *record, struct err *err)
{
	f->cpu_came = true;
	f->cpu_idle = 0;
	if (f->due)
		feed_expire(f, CPU_SETTLE_NS);
	top_model_begin_cpu(f->model, record->when.time_ns);
	if (!feed_takes_id(f, &who->id))
		return 0;
	return top_model_add_cpu(f->model, who, record->profile.profile, record->when.time_ns, err);
}

/* With the lock held. */
static void feed_write_counts(struct top_feed *f, const struct proc_id *id,
			      const struct metrics *metrics)
{
	const struct metric *allocated = &registry_metrics[METRIC_GO_ALLOCATED];

	for (size_t i = 0; i < metrics->len; i++)
		if (metrics->points[i].metric == allocated)
			top_model_add_counted(f->model, id, metrics->points[i].increase,
					      clock_mono_ns());
}

/* The only sink: the model may add names to the profile. */
static int feed_write(struct sink *sink, struct record *record, struct err *err)
{
	const char *name = resource_label(record->resource, "process.executable.name");
	const struct top_subject who = {.id = record->resource->process,
					.service = record->resource->service,
					.name = name ? name : ""};
	struct top_feed *f = (struct top_feed *)sink;
	int r = 0;

	if (record->kind == RECORD_EVENT || !feed_takes(f, who.service))
		return 0;
	(void)pthread_mutex_lock(&f->lock);
	if (record->kind == RECORD_METRICS)
		feed_write_counts(f, &who.id, record->metrics);
	else if (strcmp(record->profile.family, CPU_READER) == 0)
		r = feed_write_cpu(f, &who, record, err);
	else
		r = top_model_add(f->model, &who, record->profile.profile, clock_mono_ns(), err);
	if (r < 0)
		f->failed = *err;
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

static int feed_flush(struct sink *sink, struct err *err)
{
	struct top_feed *f = (struct top_feed *)sink;
	struct err failed;

	(void)pthread_mutex_lock(&f->lock);
	f->intervals++;
	failed = f->failed;
	f->failed = (struct err){};
	if (++f->cpu_idle > CPU_IDLE_INTERVALS)
		top_model_begin_cpu(f->model, 0);
	if (!f->due)
		feed_expire(f, f->samples ? MIN(f->config.interval_ns, CPU_PATIENCE_NS) : 1);
	f->due = true;
	(void)pthread_mutex_unlock(&f->lock);
	/* Kept until the next interval. */
	return failed.text[0] ? err_pass(err, -EIO, &failed) : 0;
}

static void feed_close(struct sink *sink)
{
	(void)sink; /* outlives the agent */
}

/* Now, as in field 22 of /proc/PID/stat. */
static uint64_t ticks_now(void)
{
	struct timespec t = {};
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec * hz / NS_PER_SEC;
}

static int feed_start_agent(struct top_feed *f, struct err *err)
{
	static const struct sink_ops sink = {.name = "top",
					     .live = true,
					     .write = feed_write,
					     .flush = feed_flush,
					     .close = feed_close};
	/* The second one counts what is allocated. */
	static const struct source_ops *const heaps[] = {&agent_source_go_heap,
							 &agent_source_go_runtime, NULL};
	const struct agent_config config = {.interval_ns = f->config.interval_ns,
					    .cpu_hz = f->config.cpu_hz,
					    .only = f->config.ids,
					    .n_only = f->config.n_ids};
	const struct sink_row row = {.ops = &sink, .sink = (struct sink *)f};
	const struct agent_parts parts = {.asked = heaps, .sinks = &row, .n_sinks = 1};
	struct source_answer answer;
	int r;

	f->started_ns = clock_mono_ns();
	f->started_ticks = ticks_now();
	/* Set before the agent reports it: its thread may already be running. */
	f->samples = f->config.cpu_hz > 0;
	r = agent_start(&config, &parts, &f->agent, err);
	if (r < 0)
		return r;
	agent_samples(f->agent, &answer);
	(void)pthread_mutex_lock(&f->lock);
	f->samples = answer.yes;
	(void)pthread_mutex_unlock(&f->lock);
	return 0;
}

int top_feed_start(const struct top_feed_config *config, struct top_feed **ret_feed,
		   struct err *err)
{
	_cleanup_(top_feed_stopp) struct top_feed *f = calloc(1, sizeof(*f));
	int r;

	if (!f || pthread_mutex_init(&f->lock, NULL)) {
		free(TAKE_PTR(f));
		return err_oom(err);
	}
	f->config = *config;
	f->cpu_share = NAN;
	f->cpu_ns = clock_cpu_ns();
	f->mono_ns = clock_mono_ns();
	f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (f->timer < 0)
		return err_set(err, -errno, "cannot create a timer: %s", strerror(errno));
	r = top_model_new(&f->model, err);
	if (r == 0)
		r = feed_start_agent(f, err);
	if (r < 0)
		return r;
	*ret_feed = TAKE_PTR(f);
	return 0;
}

void top_feed_stop(struct top_feed *f)
{
	if (!f)
		return;
	agent_stop(f->agent);
	top_model_free(f->model);
	closep(&f->timer);
	(void)pthread_mutex_destroy(&f->lock);
	free(f);
}

int top_feed_fd(const struct top_feed *f)
{
	return f->timer;
}

bool top_feed_samples(const struct top_feed *f)
{
	return f->samples;
}

void top_feed_acknowledge(struct top_feed *f)
{
	uint64_t expired;

	(void)pthread_mutex_lock(&f->lock);
	if (read(f->timer, &expired, sizeof(expired)) == sizeof(expired)) {
		f->due = false;
		f->cpu_shown |= f->cpu_came;
	}
	(void)pthread_mutex_unlock(&f->lock);
}

int top_feed_set_interval(struct top_feed *f, uint64_t interval_ns, struct err *err)
{
	agent_stop(TAKE_PTR(f->agent));
	f->config.interval_ns = interval_ns;
	f->seen = false;
	/* No other thread is left. */
	top_model_rebase(f->model);
	return feed_start_agent(f, err);
}

void top_feed_freeze(struct top_feed *f, bool frozen)
{
	(void)pthread_mutex_lock(&f->lock);
	top_model_freeze(f->model, frozen);
	(void)pthread_mutex_unlock(&f->lock);
}

static void status_refuse(struct top_status *s, const struct source_answer *answer)
{
	const char *reason = answer->reason;
	enum err_cause cause = answer->cause;
	size_t i = 0;

	/* Most processes are not Go: they are counted, not listed. */
	if (answer->cause == ERR_CAUSE_NOT_GO) {
		s->not_go++;
		return;
	}
	s->not_profiled++;
	while (i < s->n_refused && strcmp(s->refused[i].reason, reason) != 0)
		i++;
	/* The last slot collects the rest. */
	if (i >= TOP_MAX_REASONS - 1) {
		i = TOP_MAX_REASONS - 1;
		reason = "for other reasons";
		cause = ERR_CAUSE_OTHER;
	}
	if (i >= s->n_refused) {
		s->n_refused = i + 1;
		s->refused[i].cause = cause;
		(void)snprintf(s->refused[i].reason, sizeof(s->refused[i].reason), "%s", reason);
	}
	s->refused[i].processes++;
}

static void status_target(const struct top_feed *f, struct top_status *s,
			  const struct agent_target *t)
{
	/* Its service is not known yet either. There are always some new processes. */
	if (strcmp(t->target.runtime, NOT_LOOKED) == 0) {
		s->looked = s->looked && t->target.info.id.start_ticks > f->started_ticks;
		return;
	}
	if (!feed_takes(f, t->target.info.service))
		return;
	for (size_t i = 0; i < t->n_sources; i++) {
		if (strcmp(t->sources[i].source, agent_source_go_heap.name) != 0)
			continue;
		s->slow += t->sources[i].slow;
		if (t->sources[i].answer.yes)
			s->profiled++;
		else
			status_refuse(s, &t->sources[i].answer);
	}
}

static int compare_refused(const void *a, const void *b)
{
	const __typeof__(((struct top_status *)0)->refused[0]) *x = a, *y = b;

	return (x->processes < y->processes) - (x->processes > y->processes);
}

static int status_targets(struct top_feed *f, struct top_status *s, struct err *err)
{
	_cleanup_(agent_targets_release) struct agent_targets targets = {};
	_cleanup_free_ struct proc_id *ids = NULL;

	if (agent_targets(f->agent, &targets) < 0)
		return err_oom(err);
	ids = calloc(targets.len + 1, sizeof(*ids));
	if (!ids)
		return err_oom(err);
	s->looked = targets.len > 0;
	f->seen |= targets.len > 0;
	s->ended = f->config.n_ids && f->seen && targets.len == 0;
	for (size_t i = 0; i < targets.len; i++) {
		ids[i] = targets.items[i].target.info.id;
		status_target(f, s, &targets.items[i]);
	}
	qsort(s->refused, s->n_refused, sizeof(s->refused[0]), compare_refused);
	(void)pthread_mutex_lock(&f->lock);
	top_model_retain(f->model, ids, targets.len);
	(void)pthread_mutex_unlock(&f->lock);
	return 0;
}

/* Over at least a second; less is meaningless. */
static void status_cost(struct top_feed *f, struct top_status *s)
{
	uint64_t cpu = clock_cpu_ns(), mono = clock_mono_ns();

	if (mono - f->mono_ns >= NS_PER_SEC) {
		f->cpu_share = (double)(cpu - f->cpu_ns) / (double)(mono - f->mono_ns);
		f->cpu_ns = cpu;
		f->mono_ns = mono;
	}
	s->cpu_share = f->cpu_share;
}

/* The agent's answer about the sampler does not change while it runs. */
static void status_samples(const struct top_feed *f, struct top_status *s)
{
	struct source_answer answer;

	agent_samples(f->agent, &answer);
	s->samples = f->samples;
	s->cpus = (size_t)get_nprocs();
	if (f->config.cpu_hz && !f->samples)
		(void)err_lack(&s->no_samples, 0, answer.cause, answer.remedy, "no CPU samples: %s",
			       answer.reason);
}

int top_feed_status(struct top_feed *f, struct top_status *ret_status, struct err *err)
{
	struct top_status s = {.interval_ns = f->config.interval_ns};
	struct agent_health health;
	int r = status_targets(f, &s, err);

	if (r < 0)
		return r;
	agent_health(f->agent, &health);
	s.lost_records = health.lost_records;
	s.failures = health.failures;
	s.cpu_collections = health.cpu_collections;
	s.cpu_samples = health.cpu_samples;
	s.cpu_lost = health.cpu_samples_lost;
	status_samples(f, &s);
	memcpy(s.trouble, health.trouble, sizeof(s.trouble));
	status_cost(f, &s);
	(void)pthread_mutex_lock(&f->lock);
	s.intervals = f->intervals;
	s.sampled = f->cpu_shown;
	top_model_sums(f->model, &s.sums);
	(void)pthread_mutex_unlock(&f->lock);
	s.age_ns = clock_mono_ns() - f->started_ns;
	s.measuring = s.sums.measured == 0 && (s.sums.processes || s.intervals < 2);
	*ret_status = s;
	return 0;
}

int top_feed_table(struct top_feed *f, const struct top_view *view, struct top_table *ret_table,
		   struct err *err)
{
	int r;

	(void)pthread_mutex_lock(&f->lock);
	/* Samples may have arrived since the last check. */
	if (view->kind == TOP_CPU)
		f->cpu_shown |= f->cpu_came;
	r = top_model_table(f->model, view, ret_table, err);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

int top_feed_take_deltas(struct top_feed *f, struct top_process_delta **ret_deltas, size_t *ret_len,
			 struct err *err)
{
	int r;

	(void)pthread_mutex_lock(&f->lock);
	r = top_model_take_deltas(f->model, ret_deltas, ret_len);
	(void)pthread_mutex_unlock(&f->lock);
	return r < 0 ? err_oom(err) : 0;
}
