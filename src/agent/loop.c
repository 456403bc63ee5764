/*
 * src/agent/loop.c: discover, send out what is due, write what comes back, flush; every interval.
 *
 * All readings of an interval carry the same time, its end, so that processes can be added up point
 * by point. The clock on the wall may jump: intervals are measured by the monotonic one, and each
 * asks anew where on the wall it ends.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_impl.h"
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
	/* The boundary that is nearest to one whole interval from now. */
	int64_t stamp = (wall + length + length / 2) / length * length;
	uint64_t now = clock_mono_ns();

	/* Slowed clocks and the like: never twice the same time, unless the clock was set back. */
	if (stamp == a->interval.stamp_ns)
		stamp += length;
	a->interval = (struct agent_interval){
		.number = a->interval.number + 1,
		.begin_ns = now,
		.end_ns = now + (uint64_t)(stamp - wall),
		.stamp_ns = stamp,
	};
	targets_verify(a);
}

static void health_update(struct agent *a)
{
	uint64_t now = clock_mono_ns();
	bool exhausted = pool_exhausted(a->pool);
	struct agent_health *h = &a->health;
	struct agent_cpu_health cpu = {};
	struct agent_oom_health oom = {};

	if (a->cpu)
		agent_cpu_health(a->cpu, &cpu);
	if (a->oom)
		agent_oom_health(a->oom, &oom);
	(void)pthread_mutex_lock(&a->lock);
	h->intervals++;
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
	if (a->sink_trouble[0])
		(void)snprintf(h->trouble, sizeof(h->trouble), "%s", a->sink_trouble);
	else if (exhausted)
		(void)snprintf(h->trouble, sizeof(h->trouble),
			       "%d processes do not answer, and the others have to wait",
			       POOL_MAX_THREADS);
	else if (cpu.trouble[0])
		(void)snprintf(h->trouble, sizeof(h->trouble), "%s", cpu.trouble);
	else if (a->too_many)
		(void)snprintf(h->trouble, sizeof(h->trouble),
			       "there are more than %d processes: the others are not shown",
			       AGENT_MAX_TARGETS);
	else
		h->trouble[0] = 0;
	(void)pthread_mutex_unlock(&a->lock);
}

static void sinks_say(struct agent *a, const struct err *err)
{
	char line[ERR_LINE_MAX];

	(void)err_describe(err, -EIO, line);
	(void)pthread_mutex_lock(&a->lock);
	a->health.write_failures++;
	(void)snprintf(a->sink_trouble, sizeof(a->sink_trouble), "%.*s",
		       (int)sizeof(a->sink_trouble) - 1, line);
	(void)pthread_mutex_unlock(&a->lock);
}

static void sinks_flush(struct agent *a)
{
	bool well = true;

	for (size_t i = 0; i < a->n_sinks; i++) {
		struct err err = {0};

		if (a->sinks[i].ops->flush(a->sinks[i].sink, &err) == 0)
			continue;
		sinks_say(a, &err);
		well = false;
	}
	if (!well)
		return;
	(void)pthread_mutex_lock(&a->lock);
	a->sink_trouble[0] = 0;
	(void)pthread_mutex_unlock(&a->lock);
}

static void reading_write(struct agent *a, const struct target *target, const char *family,
			  const struct reading *reading)
{
	for (size_t i = 0; i < a->n_sinks; i++) {
		struct err err = {0};

		if (a->sinks[i].ops->write(a->sinks[i].sink, target, family, reading, &err) < 0)
			sinks_say(a, &err);
	}
}

static void job_write(struct agent *a, struct agent_job *job)
{
	for (size_t i = 0; i < a->n_readers; i++) {
		struct reading *reading = &job->readers[i].reading;

		if (reading->profile && job->readers[i].result == 0)
			reading_write(a, &job->target, a->readers[i]->family, reading);
		reading_release(reading);
	}
	free(job);
}

static void cpu_write(struct agent *a)
{
	struct agent_cpu_reading **at = &a->cpu_waiting;

	while (*at)
		at = &(*at)->next;
	*at = a->cpu ? agent_cpu_take(a->cpu) : NULL;
	at = &a->cpu_waiting;
	while (*at) {
		struct agent_cpu_reading *r = *at;
		enum cpu_verdict verdict = targets_judge_cpu(a, r);

		if (verdict == CPU_LATER) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		if (verdict == CPU_TAKE)
			reading_write(a, &r->target, r->family, &r->reading);
		agent_cpu_reading_free(r);
	}
}

/* A last picture is safe at once: what killed the program may well kill us next. */
static void oom_write(struct agent *a)
{
	struct agent_oom_reading *r = a->oom ? agent_oom_take(a->oom) : NULL;
	bool any = r;

	while (r) {
		struct agent_oom_reading *next = r->next;

		reading_write(a, &r->target, AGENT_OOM_FAMILY, &r->reading);
		agent_oom_reading_free(r);
		r = next;
	}
	if (any)
		sinks_flush(a);
}

/* Waits until something comes back, or is to be sent out; writes what came. */
static void results_write(struct agent *a, uint64_t until_ns)
{
	struct pool_job *done = pool_take(a->pool, until_ns);

	while (done) {
		struct agent_job *job = (struct agent_job *)done;

		targets_receive(a, job);
		job_write(a, job);
		done = pool_take(a->pool, 0);
	}
	cpu_write(a);
	oom_write(a);
}

static void cpu_ask(struct agent *a)
{
	if (a->cpu)
		agent_cpu_ask(a->cpu, a->interval.stamp_ns,
			      (int64_t)(clock_mono_ns() - a->interval.begin_ns));
}

/*
 * Opening leaves many times of what it keeps in free pieces, and so do readings that are rare
 * because they are large; we run for weeks after it.
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
	while ((a->jobs_out || (a->cpu && !agent_cpu_is_idle(a->cpu))) &&
	       clock_mono_ns() < targets_patience_ns(a))
		results_write(a, targets_patience_ns(a));
	sinks_flush(a);
	targets_close_all(a);
}

void *agent_loop(void *arg)
{
	struct agent *a = arg;

	/*
	 * What one collection needs goes back to the system: fixed, for malloc would raise the
	 * threshold, and fill the gaps between what stays with what does not.
	 */
	(void)mallopt(M_MMAP_THRESHOLD, LOOP_LARGE_BYTES);

	while (!stopping(a)) {
		interval_begin(a);
		do {
			targets_discover(a);
			results_write(a, targets_send_due(a));
		} while (!stopping(a) && !interval_over(a));
		cpu_ask(a);
		sinks_flush(a);
		memory_return(a);
		health_update(a);
	}
	drain(a);
	return NULL;
}
