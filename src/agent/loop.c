/*
 * src/agent/loop.c: every interval: discover, start due jobs, write their results, flush.
 *
 * All readings of an interval carry the same timestamp, its end, so that processes can be summed
 * point by point. The wall clock may jump, so intervals are measured by the monotonic clock, and
 * each one computes its end in wall time anew.
 */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"

#define LOOP_LARGE_BYTES (32 << 10)

static bool stopping(struct agent *a)
{
	return atomic_load(&a->stopping);
}

static bool interval_over(const struct agent *a)
{
	return clock_mono_ns() >= a->interval.end_ns;
}

static void interval_begin(struct agent *a)
{
	int64_t length = (int64_t)a->config.interval_ns;
	int64_t wall = (int64_t)clock_unix_ns();
	/* The boundary nearest to one whole interval from now. */
	int64_t stamp = (wall + length + length / 2) / length * length;
	uint64_t now = clock_mono_ns();

	/*
	 * Never use a timestamp twice, for example with a slewed clock, unless the clock was set
	 * back.
	 */
	if (stamp == a->interval.stamp_ns)
		stamp += length;
	pipeline_names_tick(pipeline_names_of(a->pipeline),
			    a->interval.number ? now - a->interval.begin_ns : 0);
	a->interval = (struct agent_interval){
		.number = a->interval.number + 1,
		.begin_ns = now,
		.end_ns = now + (uint64_t)(stamp - wall),
		.stamp_ns = stamp,
		.start_ns = a->interval.stamp_ns,
	};
	(void)pthread_mutex_lock(&a->lock);
	a->watched_end_ns = a->interval.end_ns;
	(void)pthread_mutex_unlock(&a->lock);
	agent_targets_verify(a);
}

/* The readings of the next interval cover the late ones, too, and are spread over them. */
static void spread_write(struct agent *a, uint64_t late_ns)
{
	uint64_t length = a->config.interval_ns;
	const struct record_time when = {
		.time_ns = a->interval.stamp_ns + (int64_t)length,
		.duration_ns = (int64_t)(late_ns + length),
	};
	const struct record_parts parts = record_time_divide(&when, length);

	for (uint32_t i = 0; i < parts.n; i++) {
		_cleanup_(metrics_freep) struct metrics *m = metrics_new();
		struct record_time time = record_time_part(&when, &parts, i);
		const struct metric_point point = {.metric = &registry_metrics[METRIC_SONDE_SPREAD],
						   .attributes = {"readings"},
						   .value = NAN,
						   .increase = (double)time.duration_ns};
		struct delivery *d;

		if (!m || metrics_add(m, &point) < 0)
			return;
		d = delivery_new(record_new_metrics(TAKE_PTR(m)), time);
		if (!d)
			return;
		d->info = a->self;
		delivery_list_add(&a->mail, d);
	}
}

/*
 * An interval that ends late by one or more covers those as well: what is read in them carries the
 * time at which it was read.
 */
static void interval_stretch(struct agent *a)
{
	uint64_t length = a->config.interval_ns, now = clock_mono_ns();
	uint64_t late = now > a->interval.end_ns ? now - a->interval.end_ns : 0;

	late = (late + length / 2) / length * length;
	a->interval.stamp_ns += (int64_t)(late - a->interval.late_ns);
	a->interval.late_ns = late;
}

static void interval_end(struct agent *a)
{
	interval_stretch(a);
	if (a->interval.late_ns)
		spread_write(a, a->interval.late_ns);
}

/* Sums over all sinks; trouble is that of the first sink that has any. */
static void sinks_sum(const struct agent *a, struct outbox_status *ret_sum)
{
	struct outbox_status sum = {};

	for (size_t i = 0; i < pipeline_n_sinks(a->pipeline); i++) {
		struct outbox_status s;

		pipeline_status(a->pipeline, i, &s);
		sum.failures += s.failures;
		sum.dropped += s.dropped;
		if (!sum.trouble[0])
			memcpy(sum.trouble, s.trouble, sizeof(sum.trouble));
	}
	*ret_sum = sum;
}

static void health_update(struct agent *a)
{
	uint64_t now = clock_mono_ns();
	bool exhausted = agent_pool_exhausted(a->pool);
	struct agent_health *h = &a->health;
	struct agent_cpu_health cpu = {};
	struct agent_oom_health oom = {};
	struct outbox_status sinks;

	sinks_sum(a, &sinks);
	if (a->cpu)
		agent_cpu_health(a->cpu, &cpu);
	if (a->oom)
		agent_oom_health(a->oom, &oom);
	(void)pthread_mutex_lock(&a->lock);
	h->intervals++;
	h->cpu_collections = cpu.collections;
	h->cpu_samples = cpu.losses.samples;
	h->cpu_samples_lost = cpu.losses.lost_ring + cpu.losses.lost_table + cpu.lost_memory;
	h->cpu_stacks_cut = 0;
	for (int end = CPU_STACK_ROOT + 1; end < CPU_STACK_N; end++)
		h->cpu_stacks_cut += cpu.losses.ends[end];
	h->oom_kills = oom.kills;
	h->oom_late = oom.late;
	h->oom_lost = oom.lost;
	memcpy(h->oom_trouble, oom.trouble, sizeof(h->oom_trouble));
	h->lag_ns = now > a->interval.end_ns ? (int64_t)(now - a->interval.end_ns) : 0;
	h->write_failures = sinks.failures;
	h->records_dropped = sinks.dropped;
	if (sinks.trouble[0])
		memcpy(h->trouble, sinks.trouble, sizeof(h->trouble));
	else if (exhausted)
		(void)snprintf(h->trouble, sizeof(h->trouble),
			       "%d processes are not responding and delay the others",
			       AGENT_POOL_MAX_THREADS);
	else if (cpu.trouble[0])
		(void)snprintf(h->trouble, sizeof(h->trouble), "%s", cpu.trouble);
	else if (a->too_many)
		(void)snprintf(h->trouble, sizeof(h->trouble),
			       "more than %d processes; the rest are not shown", AGENT_MAX_TARGETS);
	else
		h->trouble[0] = 0;
	(void)pthread_mutex_unlock(&a->lock);
}

/* Our own metrics are written like any others. */
static void health_write(struct agent *a)
{
	struct agent_health h, *told = &a->told;
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();
	struct delivery *d;
	int r;

	agent_health(a, &h);
	const struct {
		enum metric_id id;
		double value, before; /* before: NAN for a gauge */
	} rows[] = {
		{METRIC_SONDE_TARGETS, (double)h.targets, NAN},
		{METRIC_SONDE_TARGETS_PROFILED, (double)h.profiled, NAN},
		{METRIC_SONDE_LAG, (double)h.lag_ns, NAN},
		{METRIC_SONDE_MEMORY, (double)h.rss_bytes, NAN},
		{METRIC_SONDE_INTERVALS, (double)h.intervals, (double)told->intervals},
		{METRIC_SONDE_COLLECTIONS, (double)h.collections, (double)told->collections},
		{METRIC_SONDE_COLLECTION_FAILURES, (double)h.failures, (double)told->failures},
		{METRIC_SONDE_RECORDS_DROPPED, (double)h.records_dropped,
		 (double)told->records_dropped},
		{METRIC_SONDE_CPU_SAMPLES, (double)h.cpu_samples, (double)told->cpu_samples},
		{METRIC_SONDE_CPU_SAMPLES_LOST, (double)h.cpu_samples_lost,
		 (double)told->cpu_samples_lost},
		{METRIC_SONDE_CPU_TIME, (double)h.cpu_ns, (double)told->cpu_ns},
	};

	r = m ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
		r = isnan(rows[i].before) ? metrics_add_gauge(m, rows[i].id, rows[i].value)
					  : metrics_add_counter(m, rows[i].id, rows[i].value,
								rows[i].value - rows[i].before);
	*told = h;
	if (r < 0)
		return;
	d = delivery_new(record_new_metrics(TAKE_PTR(m)),
			 (struct record_time){.time_ns = a->interval.stamp_ns,
					      .duration_ns = (int64_t)a->config.interval_ns});
	if (!d)
		return;
	d->info = a->self;
	delivery_list_add(&a->mail, d);
}

/* The only write path: everything collected goes to all sinks here. */
static void mail_write(struct agent *a)
{
	struct delivery_list later;
	bool urgent = false;

	delivery_list_init(&later);
	inbox_take(&a->inbox, &a->mail);
	agent_targets_name(a);
	while (a->mail.first) {
		struct delivery *d = delivery_list_pop(&a->mail);
		enum agent_delivery_verdict verdict = agent_targets_judge(a, d);

		if (verdict == AGENT_DELIVERY_LATER) {
			delivery_list_add(&later, d);
			continue;
		}
		if (verdict == AGENT_DELIVERY_TAKE) {
			pipeline_write_take(a->pipeline, d->resource, d->when, TAKE_PTR(d->record));
			urgent |= d->urgent;
		}
		delivery_free(d);
	}
	delivery_list_move(&later, &a->mail);
	if (urgent)
		pipeline_flush(a->pipeline);
}

/* Waits for a finished job or until the next one is due, then takes all results. */
static void results_take(struct agent *a, uint64_t until_ns)
{
	struct agent_pool_job *done = agent_pool_take(a->pool, until_ns);

	if (done)
		interval_stretch(a);
	while (done) {
		agent_targets_receive(a, (struct agent_job *)done);
		done = agent_pool_take(a->pool, 0);
	}
}

static void sources_ask(struct agent *a)
{
	const struct record_time when = {
		.time_ns = a->interval.stamp_ns,
		.duration_ns = (int64_t)(clock_mono_ns() - a->interval.begin_ns),
	};

	for (size_t i = 0; i < a->n_pushers; i++)
		if (a->pushers[i].ops->ask)
			a->pushers[i].ops->ask(a->pushers[i].state, when);
}

static bool sources_are_idle(const struct agent *a)
{
	for (size_t i = 0; i < a->n_pushers; i++)
		if (a->pushers[i].ops->is_idle && !a->pushers[i].ops->is_idle(a->pushers[i].state))
			return false;
	return true;
}

/*
 * Opening a target leaves far more free chunks than it keeps, and so do rare, large readings. The
 * agent runs for weeks, so return them.
 */
static void memory_return(struct agent *a)
{
	if (a->untidy)
		(void)malloc_trim(0);
	a->untidy = false;
}

static void drain(struct agent *a)
{
	a->answered_ns = a->drain_ns = clock_mono_ns();
	a->named = true; /* there is no more time to wait */
	while ((a->jobs_out || !sources_are_idle(a)) &&
	       clock_mono_ns() < agent_targets_patience_ns(a)) {
		results_take(a, agent_targets_patience_ns(a));
		mail_write(a);
	}
	/* Stopping may deliver last records: write them, too. */
	(void)agent_stop_pushers(a);
	mail_write(a);
	pipeline_flush(a->pipeline);
	agent_targets_close_all(a);
}

void *agent_loop(void *arg)
{
	struct agent *a = arg;

	/*
	 * Memory of one collection goes back to the system. Set a fixed threshold: malloc would
	 * raise it, and mix short-lived with long-lived chunks.
	 */
	(void)mallopt(M_MMAP_THRESHOLD, LOOP_LARGE_BYTES);

	while (!stopping(a)) {
		interval_begin(a);
		do {
			agent_targets_discover(a);
			results_take(a, agent_targets_send_due(a));
			mail_write(a);
		} while (!stopping(a) && !interval_over(a));
		interval_end(a);
		sources_ask(a);
		pipeline_flush(a->pipeline);
		memory_return(a);
		health_update(a);
		health_write(a);
	}
	(void)pthread_mutex_lock(&a->lock);
	a->watched_end_ns = 0;
	(void)pthread_mutex_unlock(&a->lock);
	drain(a);
	return NULL;
}
