/* src/agent/agent.c: see agent.h. Starts and stops the agent, and reports its state. */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"
#include "base/io.h"
#include "features/probe.h"
#include "golang/rates/journal.h"
#include "proc/aide/aides.h"
#include "proc/host.h"
#include "proc/rss.h"

/* How long sinks may take to write their records at the end. */
#define AGENT_SINKS_STOP_NS (10 * NS_PER_SEC)
/* How long JVMs may take to end their recordings: normally a second, more on a busy machine. */
#define AGENT_JAVA_STOP_NS (30 * NS_PER_SEC)
/* Delays that are worth a word: of the collection, and of a sink. */
#define AGENT_LATE_NS (2 * NS_PER_SEC)
#define AGENT_BEHIND_NS (60 * NS_PER_SEC)
/* Of the file with the names of services: as many as there can be, of the usual length. */
#define AGENT_NAMES_BYTES ((size_t)8 << 20)

bool agent_stop_pushers(struct agent *a)
{
	bool ended = true;

	for (size_t i = 0; i < a->n_pushers; i++) {
		struct agent_pusher *p = &a->pushers[i];

		if (!p->stopped)
			p->hangs = !p->ops->stop(p->state);
		p->stopped = true;
		ended = ended && !p->hangs;
	}
	return ended;
}

static void agent_free(struct agent *a)
{
	bool ended;

	agent_listings_stop(a->listings);
	ended = agent_stop_pushers(a);
	delivery_list_release(&a->mail);
	if (a->pipeline)
		ended = pipeline_stop(a->pipeline, clock_mono_ns() + AGENT_SINKS_STOP_NS) && ended;
	ended = agent_java_stop(a->configs.java.java, clock_mono_ns() + AGENT_JAVA_STOP_NS) &&
		ended;
	if (!ended)
		return;
	/* A thread that hangs in a reader may still return, so its memory must stay. */
	if (!agent_pool_free(a->pool, agent_targets_drop))
		return;
	agent_targets_free(a);
	live_clear(&a->machine);
	for (size_t i = 0; i < a->n_pushers; i++)
		if (a->pushers[i].ops->free)
			a->pushers[i].ops->free(a->pushers[i].state);
	golang_rate_journal_close(a->configs.go.rates);
	inbox_release(&a->inbox);
	pipeline_free(a->pipeline);
	(void)pthread_mutex_destroy(&a->lock);
	agent_builds_free(a->builds);
	free(a->names_path);
	free(a);
}

/* Runs even if Java is not recorded: it undoes what a killed agent left in JVMs. */
static int agent_start_java(struct agent *a, struct err *err)
{
	const struct agent_java_config config = {.ops = &agent_java_ops_jvm,
						 .state_dir = a->config.state_dir,
						 .interval_ns = a->config.interval_ns,
						 .async_library = a->config.java_async,
						 .no_maps = !a->config.cpu_hz &&
							    !a->config.offcpu_min_ns};

	a->configs.java.on = a->config.java;
	a->configs.java.async = config.async_library;
	a->config.java_async = NULL; /* the caller's */
	return config.state_dir ? agent_java_start(&config, &a->configs.java.java, err) : 0;
}

static int agent_read_names(struct agent *a, const char *dir, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(AGENT_NAMES_BYTES);

	if (asprintf(&a->names_path, "%s/services", dir) < 0) {
		a->names_path = NULL;
		return err_oom(err);
	}
	/* None yet, or lost: whoever comes first has its name again. */
	if (io_read_file(AT_FDCWD, a->names_path, &text, NULL) == 0)
		pipeline_names_read(pipeline_names_of(a->pipeline), buf_view(&text));
	return 0;
}

int agent_save_names(struct agent *a, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(AGENT_NAMES_BYTES);
	struct pipeline_names *names = pipeline_names_of(a->pipeline);
	int r;

	a->names_unsaved |= pipeline_names_changed(names);
	if (!a->names_path || !a->names_unsaved)
		return 0;
	if (pipeline_names_write(names, &text) < 0)
		return err_oom(err);
	r = io_write_private(a->names_path, buf_view(&text), err);
	a->names_unsaved = r < 0;
	return r;
}

static void agent_hear_mail(void *context)
{
	struct agent *a = context;

	agent_pool_wake(a->pool);
}

/* Execs may come by the thousand: one scan covers all since the last. */
static void agent_hear_exec(void *context)
{
	struct agent *a = context;

	if (!atomic_exchange(&a->exec_heard, true))
		agent_pool_wake(a->pool);
}

/* Whoever else is called so is another. */
static void agent_know_self(struct agent *a)
{
	if (proc_info_read_shallow(getpid(), &a->self, NULL) < 0)
		a->self = (struct proc_info){.id.pid = getpid(), .uid = geteuid()};
	(void)snprintf(a->self.service, sizeof(a->self.service), "%s", AGENT_SELF);
	a->self.rank = PROC_RANK_PROVEN;
}

/* Settings of the sources, from the command line. */
static void agent_configure(struct agent *a)
{
	const struct agent_config *c = &a->config;

	a->configs.go = (struct agent_go_source_config){
		.heap = c->go_heap,
		.keep_rate = c->keep_rate,
		.goroutine_interval_ns = c->goroutine_interval_ns,
		.goroutine_max = c->goroutine_max ? c->goroutine_max : AGENT_GOROUTINE_MAX,
	};
	a->configs.cpu = (struct agent_cpu_config){
		.hz = c->cpu_hz,
		.offcpu_min_ns = c->offcpu_min_ns,
		.lines = c->cpu_lines,
		.interval_ns = c->interval_ns,
		.self = a->self,
		.on_exec = agent_hear_exec,
		.context = a,
	};
	a->configs.oom = (struct agent_oom_config){.percent = c->oom_percent};
	a->configs.node = (struct agent_node_config){.interval_ns = c->interval_ns};
}

static bool is_among(const struct source_ops *const *list, const struct source_ops *ops)
{
	while (*list && *list != ops)
		list++;
	return *list;
}

static bool agent_knows(const struct agent *a, const struct source_ops *ops)
{
	for (size_t i = 0; i < a->n_sources; i++)
		if (a->sources[i].ops == ops)
			return true;
	return false;
}

/* The enabled sources of the table, plus those of tests. */
static void agent_list_asked(struct agent *a, const struct source_ops *const *asked)
{
	struct source_row rows[AGENT_SOURCES_MAX];
	size_t n = agent_sources_list(&a->configs, rows);

	for (size_t i = 0; i < n; i++)
		if (rows[i].ops->collect && (!asked || is_among(asked, rows[i].ops)))
			a->sources[a->n_sources++] = rows[i];
	for (; asked && *asked && a->n_sources < AGENT_SOURCES_MAX; asked++)
		if (!agent_knows(a, *asked))
			a->sources[a->n_sources++] = (struct source_row){.ops = *asked};
}

/* Records whether the sampler started. state: NULL if it did not. */
static void agent_judge_cpu(struct agent *a, void *state, int code, const struct err *err)
{
	a->cpu = state;
	a->wants_cpu = true;
	a->cpu_answer.yes = state;
	features_set(&a->features, FEATURES_CPU, code, err);
	features_set(&a->features, FEATURES_OFFCPU, code, err);
	if (!state)
		source_answer_refuse(&a->cpu_answer, code, err);
}

static void agent_start_pusher(struct agent *a, const struct source_row *row)
{
	void *state = NULL;
	struct err err = {};
	int r = row->ops->start(row->config, &a->inbox, &state, &err);

	if (r == 0)
		a->pushers[a->n_pushers++] = (struct agent_pusher){.ops = row->ops, .state = state};
	if (row->ops == &agent_source_cpu)
		agent_judge_cpu(a, state, r, &err);
	if (row->ops == &agent_source_oom)
		a->configs.go.oom = a->oom = state;
}

/* A source that does not work on this machine is no failure: it reports why, the others run. */
static void agent_start_pushers(struct agent *a)
{
	struct source_row rows[AGENT_SOURCES_MAX];
	size_t n = agent_sources_list(&a->configs, rows);

	for (size_t i = 0; i < n; i++)
		if (rows[i].ops->start &&
		    (!rows[i].ops->is_wanted || rows[i].ops->is_wanted(rows[i].config)))
			agent_start_pusher(a, &rows[i]);
}

/* Probes the remaining features and marks those not enabled. Call after all parts have started. */
static void agent_settle_features(struct agent *a)
{
	struct features *f = &a->features;

	features_probe_host(f);
	if (!a->config.cpu_hz)
		features_disable(f, FEATURES_CPU, "--cpu-hz is 0",
				 "start sonde run without --cpu-hz 0");
	if (!a->config.offcpu_min_ns)
		features_disable(f, FEATURES_OFFCPU, "not enabled",
				 "start sonde run with --offcpu 1ms");
	if (!a->config.java)
		features_disable(f, FEATURES_JAVA, "not enabled", "start sonde run with --java");
	features_settle(f);
}

void agent_samples(const struct agent *a, struct source_answer *ret_answer)
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
		features_disable(ret_features, FEATURES_OOM_KILLS, reason, remedy);
		features_disable(ret_features, FEATURES_OOM_LIMITS, reason, remedy);
		return;
	}
	agent_oom_health(a->oom, &oom);
	features_set(ret_features, FEATURES_OOM_KILLS, oom.deaf, &oom.why_deaf);
	features_set(ret_features, FEATURES_OOM_LIMITS, oom.no_limits, &oom.why_no_limits);
}

int agent_start_in(const struct agent_processes_ops *procs, const struct agent_config *config,
		   const struct agent_parts *parts, struct agent **ret_agent, struct err *err)
{
	const struct pipeline_config pipeline = {
		.sinks = parts->sinks,
		.n_sinks = parts->n_sinks,
		.spool_dir = config->state_dir,
		.spool_max_bytes = config->spool_max_bytes,
	};
	struct pipeline *p = NULL;
	struct agent *a = NULL;
	int r = pipeline_open(&pipeline, &p, err);

	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (a)
		a->builds = agent_builds_new();
	if (!a || !a->builds || pthread_mutex_init(&a->lock, NULL) ||
	    inbox_init(&a->inbox, agent_hear_mail, a) < 0) {
		if (a)
			agent_builds_free(a->builds);
		free(a);
		if (pipeline_stop(p, 0))
			pipeline_free(p);
		return err_oom(err);
	}
	delivery_list_init(&a->mail);
	a->pipeline = p;
	a->config = *config;
	a->procs = procs;
	agent_know_self(a);
	a->hides_commands = proc_host_hides_processes();
	agent_configure(a);
	agent_list_asked(a, parts->asked);
	a->health.started_ns = (int64_t)clock_unix_ns();
	if (config->state_dir)
		r = agent_read_names(a, config->state_dir, err);
	if (r == 0 && config->state_dir)
		r = golang_rate_journal_open(config->state_dir, &a->configs.go.rates, err);
	if (r == 0)
		r = agent_start_java(a, err);
	a->config.state_dir = NULL; /* the caller's */
	if (r == 0)
		r = agent_pool_new(agent_work, a, &a->pool, err);
	if (r == 0)
		r = agent_listings_start(&a->listings, err);
	if (r == 0) {
		agent_start_pushers(a);
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
	return agent_start_in(&agent_processes_procfs, config, parts, ret_agent, err);
}

void agent_stop(struct agent *a)
{
	if (!a)
		return;
	atomic_store(&a->stopping, true);
	agent_pool_wake(a->pool);
	(void)pthread_join(a->thread, NULL);
	agent_free(a);
}

static void target_snapshot(const struct agent *a, const struct agent_slot *slot,
			    struct agent_target *t)
{
	t->target = slot->target;
	t->n_sources = a->n_sources + a->wants_cpu;
	t->sources[a->n_sources].source = "cpu";
	t->sources[a->n_sources].family = "cpu";
	t->sources[a->n_sources].answer = a->cpu_answer;
	if (slot->target.info.opted_out)
		agent_slot_answer(&slot->sources[0], &t->sources[a->n_sources].answer);
	for (size_t i = 0; i < a->n_sources; i++) {
		const struct agent_slot_source *r = &slot->sources[i];

		t->sources[i].source = a->sources[i].ops->name;
		t->sources[i].family = a->sources[i].ops->family;
		agent_slot_answer(r, &t->sources[i].answer);
		t->sources[i].collections = r->collections;
		t->sources[i].failures = r->failures;
		t->sources[i].last_ns = r->last_ns;
		t->sources[i].last_cost_ns = r->last_cost_ns;
		t->sources[i].slow = r->slow;
		memcpy(t->sources[i].collector, r->collector, sizeof(r->collector));
		(void)snprintf(t->sources[i].trouble, sizeof(t->sources[i].trouble), "%s",
			       agent_slot_text(r->trouble));
	}
}

static int target_metrics(const struct agent *a, const struct agent_slot *slot,
			  struct agent_target *t)
{
	int r;

	t->metrics = metrics_new();
	r = t->metrics ? live_copy(&slot->pushed, t->metrics) : -ENOMEM;
	if (r == 0 && slot->rss_bytes && !slot->target.info.opted_out)
		r = metrics_add_gauge(t->metrics, METRIC_PROCESS_MEMORY, (double)slot->rss_bytes);
	for (size_t i = 0; r == 0 && i < a->n_sources; i++)
		r = live_copy(&slot->sources[i].live, t->metrics);
	return r;
}

int agent_machine(struct agent *a, struct metrics *to)
{
	int r;

	(void)pthread_mutex_lock(&a->lock);
	r = live_copy(&a->machine, to);
	(void)pthread_mutex_unlock(&a->lock);
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

/* As of now: an interval that does not end updates nothing. */
static void health_watch(struct agent *a, struct agent_health *h, uint64_t end_ns)
{
	uint64_t now = clock_mono_ns(), late = now > end_ns ? now - end_ns : 0;

	h->lag_ns = MAX(h->lag_ns, (int64_t)late);
	if (!h->trouble[0] && late > MAX(a->config.interval_ns, AGENT_LATE_NS))
		(void)snprintf(h->trouble, sizeof(h->trouble),
			       "collection is %llu s late: the machine is too busy, or does not "
			       "respond",
			       (unsigned long long)(late / NS_PER_SEC));
	for (size_t i = 0; !h->trouble[0] && i < pipeline_n_sinks(a->pipeline); i++) {
		struct outbox_status sink;

		pipeline_status(a->pipeline, i, &sink);
		if (sink.lag_ns > MAX(4 * a->config.interval_ns, AGENT_BEHIND_NS))
			(void)snprintf(h->trouble, sizeof(h->trouble),
				       "%s is %llu s behind; what is collected waits in memory",
				       sink.name, (unsigned long long)(sink.lag_ns / NS_PER_SEC));
	}
}

void agent_health(struct agent *a, struct agent_health *ret_health)
{
	struct proc_aides_status aides;
	uint64_t end_ns;

	(void)pthread_mutex_lock(&a->lock);
	*ret_health = a->health;
	end_ns = a->watched_end_ns;
	(void)pthread_mutex_unlock(&a->lock);
	if (end_ns)
		health_watch(a, ret_health, end_ns);
	proc_aides_status(&aides);
	ret_health->cpu_ns = clock_cpu_ns() + aides.cpu_ns;
	ret_health->hung_reads = aides.lost;
	ret_health->unanswered_reads = aides.unanswered;
	if (!ret_health->trouble[0] && aides.spawner_ended)
		(void)snprintf(ret_health->trouble, sizeof(ret_health->trouble),
			       "the process that starts sonde's helpers was killed: memory of "
			       "programs is not read; restart sonde");
	ret_health->rss_bytes = proc_rss_bytes(0);
}

void agent_sinks_status(struct agent *a, struct agent_sinks_status *ret_sinks)
{
	ret_sinks->len = pipeline_n_sinks(a->pipeline);
	for (size_t i = 0; i < ret_sinks->len; i++)
		pipeline_status(a->pipeline, i, &ret_sinks->items[i]);
}
