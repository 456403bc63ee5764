/*
 * tests/unit/agent/test_fakes.h: a made-up machine for the agent: processes that count, a reader
 * that takes differences as the real ones do, and a sink that adds up.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/clock.h"

#define FAKE_MAX 4096
#define FAKE_INTERVAL_NS (100 * NS_PER_MS)

struct fake_process {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t space;	   /* another after an exec */
	int64_t allocated; /* cumulative */
	bool opted_out;
	bool refused;  /* by the reader */
	bool hangs;    /* in collect, until it is set back */
	bool silent;   /* nothing of it can be read, until it is set back */
	bool is_mute;  /* what is known of it is only that it is there */
	bool hides;    /* hangs when it is examined, until it is set back */
	bool vanishes; /* in the middle of the next collection */
	/* What came of it. */
	int64_t written; /* sum of deltas */
	int64_t most;	 /* of one write */
	uint64_t readings;
	uint64_t writes;
	uint64_t probes;
	uint64_t opens;
	int64_t first_stamp, last_stamp;
	bool repeated; /* two writes with one time */
	bool odd;      /* a time that is no multiple of the interval */
};

static struct fake_machine {
	pthread_mutex_t lock;
	struct fake_process *processes[FAKE_MAX]; /* by pid, ascending */
	size_t len;
	size_t open; /* states */
	uint64_t flushes;
	bool sink_fails;
	bool sink_hangs; /* in a flush, until it is set back */
	bool stalls;	 /* so that the loop waits for it */
	uint64_t own;	 /* metrics of sonde itself that were written */
	int64_t own_stamp;
	bool own_repeated; /* two of them with one time */
	uint64_t census;   /* comings and goings */
	uint64_t lists;
	uint64_t censuses;
} machine = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void machine_lock(void)
{
	(void)pthread_mutex_lock(&machine.lock);
}

static inline void machine_unlock(void)
{
	(void)pthread_mutex_unlock(&machine.lock);
}

static inline struct fake_process *machine_find(pid_t pid)
{
	size_t lo = 0, hi = machine.len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (machine.processes[mid]->pid == pid)
			return machine.processes[mid];
		if (machine.processes[mid]->pid < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* Pids must come in ascending order. */
static inline void machine_add(struct fake_process *p)
{
	machine_lock();
	machine.processes[machine.len++] = p;
	machine.census++;
	machine_unlock();
}

static inline void machine_remove(pid_t pid)
{
	size_t len = 0;

	machine_lock();
	for (size_t i = 0; i < machine.len; i++)
		if (machine.processes[i]->pid != pid)
			machine.processes[len++] = machine.processes[i];
	machine.len = len;
	machine.census++;
	machine_unlock();
}

static inline int fake_list(pid_t **ret_pids, size_t *ret_len, struct err *err)
{
	pid_t *pids = calloc(FAKE_MAX, sizeof(*pids));

	(void)err;
	if (!pids)
		return -ENOMEM;
	machine_lock();
	while (machine.stalls) {
		machine_unlock();
		clock_sleep_ns(5 * NS_PER_MS);
		machine_lock();
	}
	for (size_t i = 0; i < machine.len; i++)
		pids[i] = machine.processes[i]->pid;
	*ret_len = machine.len;
	machine.lists++;
	machine_unlock();
	*ret_pids = pids;
	return 0;
}

static inline int fake_stat(pid_t pid, struct proc_stat *ret_stat, struct err *err)
{
	const struct fake_process *p;
	int r = -ESRCH;

	(void)err;
	machine_lock();
	p = machine_find(pid);
	if (p && p->silent) {
		r = -ETIMEDOUT;
	} else if (p) {
		*ret_stat = (struct proc_stat){.comm = "fake",
					       .state = 'S',
					       .start_ticks = p->start_ticks,
					       .image = 100 + p->space};
		r = 0;
	}
	machine_unlock();
	return r;
}

static inline void fake_stats(const pid_t *pids, size_t n, struct proc_stat_reading *readings)
{
	for (size_t i = 0; i < n; i++)
		readings[i].code = fake_stat(pids[i], &readings[i].stat, NULL);
}

static inline uint64_t fake_census(void)
{
	uint64_t census;

	machine_lock();
	census = machine.census + 1;
	machine.censuses++;
	machine_unlock();
	return census;
}

static inline int fake_info(pid_t pid, struct proc_info *ret_info, struct err *err)
{
	const struct fake_process *p;
	struct proc_stat st;
	bool opted_out, is_mute;
	int r = fake_stat(pid, &st, err);

	if (r < 0)
		return r;
	machine_lock();
	p = machine_find(pid);
	opted_out = p && p->opted_out;
	is_mute = p && p->is_mute;
	machine_unlock();
	if (is_mute)
		return -ETIMEDOUT;
	*ret_info = (struct proc_info){.id = {.pid = pid, .start_ticks = st.start_ticks},
				       .comm = "fake",
				       .exe = "/bin/fake",
				       .service = "fake",
				       .opted_out = opted_out};
	return 0;
}

static inline int fake_executable(pid_t pid, int *ret_path_fd)
{
	(void)pid;
	(void)ret_path_fd;
	return -ENOENT;
}

static const struct agent_processes_ops fake_world = {
	.list = fake_list,
	.stat = fake_stat,
	.stats = fake_stats,
	.census = fake_census,
	.info = fake_info,
	.executable = fake_executable,
};

struct fake_state {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t space;
	int64_t base;
	bool has_base;
};

static inline bool fake_hides(pid_t pid)
{
	const struct fake_process *p;
	bool hides;

	machine_lock();
	p = machine_find(pid);
	hides = p && p->hides;
	machine_unlock();
	return hides;
}

static inline int fake_probe(const void *config, struct source_shares *share,
			     struct source_target *target, struct source_answer *ret_answer,
			     struct err *err)
{
	struct fake_process *p;
	int r = -ESRCH;

	(void)config;
	(void)share;
	(void)err;
	while (fake_hides(target->info.id.pid))
		clock_sleep_ns(5 * NS_PER_MS);
	machine_lock();
	p = machine_find(target->info.id.pid);
	if (p) {
		p->probes++;
		*ret_answer = (struct source_answer){.yes = !p->refused};
		strcpy(ret_answer->reason, p->refused ? "refused" : "");
		strcpy(target->runtime, "fake1.0");
		r = 0;
	}
	machine_unlock();
	return r;
}

static inline int fake_open(const void *config, struct source_shares *share,
			    const struct source_target *target, void **ret_state, struct err *err)
{
	struct fake_state *s = calloc(1, sizeof(*s));
	struct fake_process *p;

	(void)config;
	(void)share;
	(void)err;
	machine_lock();
	p = machine_find(target->info.id.pid);
	if (p) {
		p->opens++;
		machine.open++;
		*s = (struct fake_state){
			.pid = p->pid, .start_ticks = p->start_ticks, .space = p->space};
	}
	machine_unlock();
	if (!p) {
		free(s);
		return -ESRCH;
	}
	*ret_state = s;
	return 0;
}

static inline int fake_profile(int64_t delta, struct source_reading *reading)
{
	struct profile *p = profile_new();
	const int64_t values[] = {1, delta};
	uint32_t stack;

	if (!p || profile_add_type(p, "alloc_objects", "count") < 0 ||
	    profile_add_type(p, "alloc_space", "bytes") < 0 ||
	    profile_add_stack(p, NULL, 0, &stack) < 0 ||
	    profile_add_sample(p, stack, values, NULL, 0) < 0)
		abort();
	reading->profile = p;
	return 0;
}

static inline bool fake_hangs(pid_t pid)
{
	const struct fake_process *p;
	bool hangs;

	machine_lock();
	p = machine_find(pid);
	hangs = p && p->hangs;
	machine_unlock();
	return hangs;
}

static inline int fake_collect(void *state, struct source_reading *ret_reading, struct err *err)
{
	struct fake_state *s = state;
	struct fake_process *p;
	int64_t delta = 0;
	bool gone;

	(void)err;
	while (fake_hangs(s->pid))
		clock_sleep_ns(5 * NS_PER_MS);
	machine_lock();
	p = machine_find(s->pid);
	gone = !p || p->vanishes || p->start_ticks != s->start_ticks || p->space != s->space;
	if (!gone) {
		delta = s->has_base ? p->allocated - s->base : 0;
		s->base = p->allocated;
		s->has_base = true;
		p->readings++;
	}
	machine_unlock();
	if (gone) {
		if (p && p->vanishes)
			machine_remove(s->pid);
		return -ESRCH;
	}
	return fake_profile(delta, ret_reading);
}

static inline void fake_close(void *state)
{
	machine_lock();
	machine.open--;
	machine_unlock();
	free(state);
}

static const struct source_ops fake_reader = {
	.name = "fake",
	.family = "fake",
	.probe = fake_probe,
	.open = fake_open,
	.collect = fake_collect,
	.close = fake_close,
};
static const struct source_ops *const fake_readers[] = {&fake_reader, NULL};

static inline int fake_write(struct sink *sink, struct record *record, struct err *err)
{
	const struct proc_id *id = &record->resource->process;
	int64_t time_ns = record->when.time_ns, delta = 0;
	struct fake_process *p;
	bool fails;

	(void)sink;
	machine_lock();
	fails = machine.sink_fails;
	p = machine_find(id->pid);
	if (p && p->start_ticks == id->start_ticks && record->kind == RECORD_PROFILE) {
		if (profile_n_samples(record->profile.profile))
			delta = profile_sample_at(record->profile.profile, 0)->values[1];
		p->written += delta;
		p->most = MAX(p->most, delta);
		p->writes++;
		p->repeated = p->repeated || p->last_stamp == time_ns;
		p->odd = p->odd || time_ns % (int64_t)FAKE_INTERVAL_NS != 0;
		p->last_stamp = time_ns;
		if (!p->first_stamp)
			p->first_stamp = time_ns;
	}
	if (id->pid == getpid() && record->kind == RECORD_METRICS) {
		machine.own++;
		machine.own_repeated |= machine.own_stamp == time_ns;
		machine.own_stamp = time_ns;
	}
	machine_unlock();
	return fails ? err_set(err, -ENOSPC, "the disk is full") : 0;
}

static inline int fake_flush(struct sink *sink, struct err *err)
{
	bool fails;

	(void)sink;
	machine_lock();
	while (machine.sink_hangs) {
		machine_unlock();
		clock_sleep_ns(5 * NS_PER_MS);
		machine_lock();
	}
	machine.flushes++;
	fails = machine.sink_fails;
	machine_unlock();
	return fails ? err_set(err, -ENOSPC, "the disk is full") : 0;
}

static inline void fake_sink_close(struct sink *sink)
{
	(void)sink;
}

static const struct sink_ops fake_sink = {
	.name = "fake", .write = fake_write, .flush = fake_flush, .close = fake_sink_close};
