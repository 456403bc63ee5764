/* src/agent/agent.c: see agent.h. Starting, stopping, and looking at it from outside. */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_impl.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "features/probe.h"
#include "golang/rate_journal.h"

/* At the end, for sinks to bring away what they have. */
#define AGENT_SINKS_STOP_NS (10 * NS_PER_SEC)
/* At the end, for JVMs to end their recordings: a second, on a busy machine many. */
#define AGENT_JAVA_STOP_NS (30 * NS_PER_SEC)

static void agent_free(struct agent *a)
{
	bool ended;

	agent_cpu_stop(a->cpu);
	delivery_list_release(&a->mail);
	ended = !a->pipeline || pipeline_stop(a->pipeline, clock_mono_ns() + AGENT_SINKS_STOP_NS);
	ended = agent_java_stop(a->context.java, clock_mono_ns() + AGENT_JAVA_STOP_NS) && ended;
	if (!agent_oom_stop(a->oom) || !ended)
		return;
	/* A thread that hangs in a reader may come back to what it uses: then that stays. */
	if (!pool_free(a->pool))
		return;
	targets_release(a);
	agent_oom_free(a->oom);
	golang_rate_journal_close(a->context.rates);
	inbox_release(&a->inbox);
	pipeline_free(a->pipeline);
	(void)pthread_mutex_destroy(&a->lock);
	free(a);
}

/* Also where none is told to record: what an agent that was killed has left is taken out. */
static int agent_start_java(struct agent *a, struct err *err)
{
	const struct agent_java_config config = {.ops = &java_ops_jvm,
						 .state_dir = a->config.state_dir,
						 .interval_ns = a->config.interval_ns,
						 .async_library = a->config.java_async,
						 .no_maps = !a->config.cpu_hz &&
							    !a->config.offcpu_min_ns};

	a->context.java_on = a->config.java;
	a->context.java_async = config.async_library;
	a->config.java_async = NULL; /* the caller's */
	return config.state_dir ? agent_java_start(&config, &a->context.java, err) : 0;
}

static void agent_hear_mail(void *context)
{
	struct agent *a = context;

	pool_wake(a->pool);
}

/* Execs may come by the thousand: one look serves all that came since the last. */
static void agent_hear_exec(void *context)
{
	struct agent *a = context;

	if (!atomic_exchange(&a->exec_heard, true))
		pool_wake(a->pool);
}

/* A machine where that is not possible is no failure: the others go on, and it is told why. */
static void agent_start_cpu(struct agent *a)
{
	const struct agent_cpu_config config = {
		.hz = a->config.cpu_hz,
		.offcpu_min_ns = a->config.offcpu_min_ns,
		.lines = a->config.cpu_lines,
		.inbox = &a->inbox,
		.on_exec = agent_hear_exec,
		.context = a,
	};
	struct err err = {};
	int r;

	a->wants_cpu = config.hz || config.offcpu_min_ns;
	if (!a->wants_cpu)
		return;
	r = agent_cpu_start(&config, &a->cpu, &err);
	features_set(&a->features, FEATURE_CPU, r, &err);
	features_set(&a->features, FEATURE_OFFCPU, r, &err);
	if (r == 0)
		a->cpu_answer.yes = true;
	else
		reader_answer_refuse(&a->cpu_answer, r, &err);
}

/* A machine where that is not possible is no failure either. */
static void agent_start_oom(struct agent *a)
{
	const struct agent_oom_config config = {
		.percent = a->config.oom_percent,
		.inbox = &a->inbox,
	};

	if (config.percent && agent_oom_start(&config, &a->oom, NULL) == 0)
		a->context.oom = a->oom;
}

/* What is left to find out, and what nobody asked for. After all parts were started. */
static void agent_settle_features(struct agent *a)
{
	struct features *f = &a->features;

	features_probe_host(f);
	if (!a->config.cpu_hz)
		features_disable(f, FEATURE_CPU, "--cpu-hz is 0",
				 "start sonde run without --cpu-hz 0");
	if (!a->config.offcpu_min_ns)
		features_disable(f, FEATURE_OFFCPU, "not enabled",
				 "start sonde run with --offcpu 1ms");
	if (!a->config.java)
		features_disable(f, FEATURE_JAVA, "not enabled", "start sonde run with --java");
	features_settle(f);
}

void agent_samples(const struct agent *a, struct reader_answer *ret_answer)
{
	*ret_answer = a->cpu_answer;
}

void agent_features(struct agent *a, struct features *ret_features)
{
	static const char reason[] = "--oom-watch is 0";
	static const char remedy[] = "start sonde run without --oom-watch 0";
	struct agent_oom_health oom = {};

	*ret_features = a->features;
	if (!a->oom) {
		features_disable(ret_features, FEATURE_OOM_KILLS, reason, remedy);
		features_disable(ret_features, FEATURE_OOM_LIMITS, reason, remedy);
		return;
	}
	agent_oom_health(a->oom, &oom);
	features_set(ret_features, FEATURE_OOM_KILLS, oom.deaf, &oom.why_deaf);
	features_set(ret_features, FEATURE_OOM_LIMITS, oom.no_limits, &oom.why_no_limits);
}

int agent_start_in(const struct world_ops *world, const struct agent_config *config,
		   const struct agent_parts *parts, struct agent **ret_agent, struct err *err)
{
	struct agent *a = calloc(1, sizeof(*a));
	int r = 0;

	if (!a || pthread_mutex_init(&a->lock, NULL) ||
	    inbox_init(&a->inbox, agent_hear_mail, a) < 0) {
		free(a);
		return err_oom(err);
	}
	delivery_list_init(&a->mail);
	a->config = *config;
	a->world = world;
	a->readers = parts->readers ? parts->readers : readers;
	while (a->readers[a->n_readers] && a->n_readers < READERS_MAX)
		a->n_readers++;
	a->context.go_heap = config->go_heap;
	a->context.keep_rate = config->keep_rate;
	a->context.goroutine_interval_ns = config->goroutine_interval_ns;
	a->context.goroutine_max =
		config->goroutine_max ? config->goroutine_max : AGENT_GOROUTINE_MAX;
	a->health.started_ns = (int64_t)clock_unix_ns();
	r = pipeline_open(parts->sinks, parts->n_sinks, &a->pipeline, err);
	if (r == 0 && config->state_dir)
		r = golang_rate_journal_open(config->state_dir, &a->context.rates, err);
	if (r == 0)
		r = agent_start_java(a, err);
	a->config.state_dir = NULL; /* the caller's */
	if (r == 0)
		r = pool_new(agent_work, a, &a->pool, err);
	if (r == 0) {
		agent_start_cpu(a);
		agent_start_oom(a);
		agent_settle_features(a);
	}
	if (r == 0 && pthread_create(&a->thread, NULL, agent_loop, a))
		r = err_set(err, -EAGAIN, "cannot start a thread: %s", strerror(EAGAIN));
	if (r < 0) {
		agent_free(a);
		return r;
	}
	*ret_agent = a;
	return 0;
}

int agent_start(const struct agent_config *config, const struct agent_parts *parts,
		struct agent **ret_agent, struct err *err)
{
	return agent_start_in(&world_procfs, config, parts, ret_agent, err);
}

void agent_stop(struct agent *a)
{
	if (!a)
		return;
	atomic_store(&a->stopping, true);
	pool_wake(a->pool);
	(void)pthread_join(a->thread, NULL);
	agent_free(a);
}

static void target_snapshot(const struct agent *a, const struct agent_slot *slot,
			    struct agent_target *t)
{
	t->target = slot->target;
	t->n_readers = a->n_readers + a->wants_cpu;
	t->readers[a->n_readers].reader = "cpu";
	t->readers[a->n_readers].answer = a->cpu_answer;
	if (slot->target.info.opted_out)
		slot_answer(&slot->readers[0], &t->readers[a->n_readers].answer);
	for (size_t i = 0; i < a->n_readers; i++) {
		const struct agent_slot_reader *r = &slot->readers[i];

		t->readers[i].reader = a->readers[i]->name;
		slot_answer(r, &t->readers[i].answer);
		t->readers[i].collections = r->collections;
		t->readers[i].failures = r->failures;
		t->readers[i].last_ns = r->last_ns;
		t->readers[i].last_cost_ns = r->last_cost_ns;
		t->readers[i].slow = r->slow;
		memcpy(t->readers[i].way, r->way, sizeof(r->way));
		(void)snprintf(t->readers[i].trouble, sizeof(t->readers[i].trouble), "%s",
			       slot_text(r->trouble));
	}
}

static int target_metrics(const struct agent *a, const struct agent_slot *slot,
			  struct agent_target *t)
{
	int r;

	t->metrics = metrics_new();
	r = t->metrics ? live_copy(&slot->pushed, t->metrics) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < a->n_readers; i++)
		r = live_copy(&slot->readers[i].live, t->metrics);
	return r;
}

void agent_targets_release(struct agent_targets *targets)
{
	for (size_t i = 0; i < targets->len; i++)
		metrics_free(targets->items[i].metrics);
	free(targets->items);
	*targets = (struct agent_targets){};
}

int agent_targets(struct agent *a, struct agent_targets *ret_targets)
{
	struct agent_targets targets = {};
	int r = 0;

	(void)pthread_mutex_lock(&a->lock);
	targets.items = calloc(a->health.targets + 1, sizeof(*targets.items));
	for (size_t i = 0; targets.items && r == 0 && i < a->n_known; i++) {
		const struct agent_slot *slot = a->known[i].slot;

		if (!slot)
			continue;
		target_snapshot(a, slot, &targets.items[targets.len]);
		r = target_metrics(a, slot, &targets.items[targets.len++]);
	}
	(void)pthread_mutex_unlock(&a->lock);
	if (!targets.items || r < 0) {
		agent_targets_release(&targets);
		return -ENOMEM;
	}
	*ret_targets = targets;
	return 0;
}

/* The second word of statm: resident pages. */
static uint64_t own_rss_bytes(void)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(4096);
	const char *words, *blank;

	if (io_read_file(AT_FDCWD, "/proc/self/statm", &text, NULL) < 0)
		return 0;
	words = buf_cstr(&text);
	blank = words ? strchr(words, ' ') : NULL;
	return blank ? strtoull(blank, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void agent_health(struct agent *a, struct agent_health *ret_health)
{
	(void)pthread_mutex_lock(&a->lock);
	*ret_health = a->health;
	(void)pthread_mutex_unlock(&a->lock);
	ret_health->cpu_ns = clock_cpu_ns();
	ret_health->rss_bytes = own_rss_bytes();
}
