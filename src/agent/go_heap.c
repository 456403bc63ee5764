/*
 * src/agent/go_heap.c: the reader of Go heap profiles.
 *
 * It reads by pread alone (proc_mem_never_wait): a page fault that the target answers itself then
 * fails instead of waiting. What remains that can hang is the pool's to bear (agent/pool.h).
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/forced.h"
#include "agent/oom.h"
#include "agent/reader.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "golang/force.h"
#include "golang/heap.h"
#include "golang/process.h"
#include "proc/mem.h"

/* inuse_objects and inuse_space; golang/heap.h tells the order of the types. */
#define GO_HEAP_SNAPSHOT_TYPES (1U << 2 | 1U << 3)

/* How long a program's last reading may wait for one that is under way; others are dying, too. */
#define GO_HEAP_LAST_NS (200 * NS_PER_MS)
/* And its picture. */
#define GO_HEAP_PICTURE_NS (3 * NS_PER_SEC)

struct go_heap {
	atomic_uint refs;		      /* the loop's, and that of agent/oom.h */
	pthread_mutex_t busy;		      /* the heap is being read */
	const struct reader_context *context; /* borrowed */
	struct golang_process *process;
	struct golang_heap *heap;
	struct proc_id id;
	int lock; /* of a forced rate, or -1 */
	int64_t old_rate;
	uint64_t bad_buckets; /* refused so far: each is lost once */
};

static int go_heap_open_mem(const struct target *target, struct proc_mem **ret_mem, struct err *err)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	int r = proc_mem_open(target->info.id.pid, &mem, err);

	if (r < 0)
		return r;
	proc_mem_never_wait(mem);
	if (!proc_id_alive(&target->info.id))
		return err_set(err, -ESRCH, "process %d has exited", (int)target->info.id.pid);
	*ret_mem = TAKE_PTR(mem);
	return 0;
}

static void go_heap_refuse(struct reader_answer *answer, const char *reason, const char *remedy)
{
	answer->yes = false;
	answer->of_file = true;
	(void)snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
	(void)snprintf(answer->remedy, sizeof(answer->remedy), "%s", remedy);
}

static int go_heap_probe(const struct reader_context *context, struct target *target,
			 struct reader_answer *ret_answer, struct err *err)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	int r = go_heap_open_mem(target, &mem, err);

	if (r == 0)
		r = golang_detect(mem, target->runtime, sizeof(target->runtime), err);
	if (r < 0)
		return r;
	*ret_answer = (struct reader_answer){.yes = true};
	if (r == 0)
		go_heap_refuse(ret_answer, "not a Go program", "");
	else if (context->go_heap == AGENT_GO_HEAP_DISABLED)
		go_heap_refuse(ret_answer, "heap profiles of Go programs are turned off",
			       "start sonde with --go-heap enabled");
	return 0;
}

/* Turns sampling on; noted before it is done, so that it can be undone whatever happens. */
static int go_heap_force(struct go_heap *g, struct err *err)
{
	struct forced_rates *forced = g->context->forced;
	const struct forced_rate note = {
		.id = g->id,
		.space = forced_space(golang_process_mem(g->process)),
		.old = g->old_rate,
		.ours = GOLANG_DEFAULT_RATE,
	};
	_cleanup_close_ int lock = -1;
	int r = golang_force_lock(&g->id, &lock, err);

	if (r == 0)
		r = forced_rates_add(forced, &note, err);
	if (r < 0)
		return r;
	r = golang_heap_set_rate(g->heap, note.ours, err);
	if (r < 0) {
		(void)forced_rates_remove(forced, &g->id, NULL);
		return r;
	}
	g->lock = TAKE_FD(lock);
	return 0;
}

static void go_heap_unref(void *state)
{
	struct go_heap *g = state;

	if (atomic_fetch_sub(&g->refs, 1) > 1)
		return;
	golang_heap_free(g->heap);
	golang_process_close(g->process);
	(void)pthread_mutex_destroy(&g->busy);
	free(g);
}

static bool go_heap_lock_in_time(struct go_heap *g, uint64_t ns)
{
	uint64_t until_ns = clock_mono_ns() + ns;
	const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				       .tv_nsec = (long)(until_ns % NS_PER_SEC)};

	return pthread_mutex_clocklock(&g->busy, CLOCK_MONOTONIC, &until) == 0;
}

/* One pass: what it shows need not be of one GC cycle (golang/heap.h), and time is short. */
static int go_heap_read_now(void *state, bool last)
{
	struct go_heap *g = state;
	int r;

	if (last && !go_heap_lock_in_time(g, GO_HEAP_LAST_NS))
		return -EBUSY;
	/* Whoever reads it at this moment brings just that. */
	if (!last && pthread_mutex_trylock(&g->busy) != 0)
		return 0;
	r = golang_heap_read_last(g->heap, NULL);
	if (!last)
		golang_heap_trim(g->heap);
	(void)pthread_mutex_unlock(&g->busy);
	return r;
}

static int go_heap_picture(void *state, struct profile **ret_profile, struct err *err)
{
	struct go_heap *g = state;
	int r;

	if (!go_heap_lock_in_time(g, GO_HEAP_PICTURE_NS))
		return err_set(err, -EBUSY, "process %d is being read, and does not answer",
			       (int)g->id.pid);
	r = golang_heap_picture(g->heap, ret_profile, err);
	golang_heap_trim(g->heap);
	(void)pthread_mutex_unlock(&g->busy);
	return r;
}

static const struct oom_source_ops go_heap_oom = {
	.read = go_heap_read_now,
	.picture = go_heap_picture,
	.unref = go_heap_unref,
};

/* Without memory for it there is one picture less. */
static void go_heap_watch(struct go_heap *g, const struct target *target)
{
	if (!g->context->oom)
		return;
	atomic_fetch_add(&g->refs, 1);
	if (agent_oom_add(g->context->oom, target, &go_heap_oom, g) < 0)
		go_heap_unref(g);
}

static void go_heap_close(void *state)
{
	struct go_heap *g = state;
	int r = 0;

	if (!g)
		return;
	if (g->context->oom)
		agent_oom_remove(g->context->oom, g);
	(void)pthread_mutex_lock(&g->busy);
	if (g->lock >= 0) {
		if (!g->context->keep_rate)
			r = forced_set_back(g->heap, g->old_rate, GOLANG_DEFAULT_RATE, NULL);
		/* What could not be set back stays noted for the next start. */
		if (r == 0 || r == -ESRCH)
			(void)forced_rates_remove(g->context->forced, &g->id, NULL);
		closep(&g->lock);
	}
	(void)pthread_mutex_unlock(&g->busy);
	go_heap_unref(g);
}

static int go_heap_turn_on(struct go_heap *g, struct err *err)
{
	int r = golang_heap_rate(g->heap, &g->old_rate, err);

	if (r < 0 || g->old_rate != 0)
		return r;
	if (g->context->go_heap == AGENT_GO_HEAP_FORCE && g->context->forced)
		return go_heap_force(g, err);
	return err_set(err, -ENOTSUP,
		       "memory profiling is off in this program; --go-heap force turns it on");
}

static struct go_heap *go_heap_new(const struct reader_context *context,
				   const struct target *target)
{
	struct go_heap *g = calloc(1, sizeof(*g));
	pthread_mutexattr_t attr;

	if (!g)
		return NULL;
	*g = (struct go_heap){.context = context, .id = target->info.id, .refs = 1, .lock = -1};
	/* The one who reads the last picture is in a hurry, and may wait for one who is not. */
	(void)pthread_mutexattr_init(&attr);
	(void)pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (pthread_mutex_init(&g->busy, &attr)) {
		free(g);
		return NULL;
	}
	return g;
}

static int go_heap_open(const struct reader_context *context, const struct target *target,
			void **ret_state, struct err *err)
{
	struct go_heap *g = go_heap_new(context, target);
	struct proc_mem *mem = NULL;
	int r;

	if (!g)
		return err_oom(err);
	r = go_heap_open_mem(target, &mem, err);
	if (r == 0)
		r = golang_process_open_take(mem, NULL, &g->process, err);
	if (r == 0)
		r = golang_heap_new(g->process, &g->heap, err);
	if (r == 0)
		r = go_heap_turn_on(g, err);
	if (r < 0) {
		go_heap_close(g);
		return r;
	}
	go_heap_watch(g, target);
	*ret_state = g;
	return 0;
}

static int go_heap_collect_busy(struct go_heap *g, struct reading *ret_reading, struct err *err)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	const struct golang_heap_stats *stats;
	int r = golang_heap_read(g->heap, err);

	stats = golang_heap_stats(g->heap);
	if (r == 0 && stats->rate == 0)
		r = err_set(err, -ENOTSUP,
			    "the program has turned memory profiling off; --go-heap force turns it "
			    "on");
	if (r == 0)
		r = golang_heap_delta_profile(g->heap, &profile, err);
	golang_heap_trim(g->heap);
	if (r < 0)
		return r;
	*ret_reading = (struct reading){
		.profile = TAKE_PTR(profile),
		.snapshot_types = GO_HEAP_SNAPSHOT_TYPES,
		.lost = stats->bad_buckets - g->bad_buckets + stats->torn_records,
	};
	g->bad_buckets = stats->bad_buckets;
	return 0;
}

static int go_heap_collect(void *state, struct reading *ret_reading, struct err *err)
{
	struct go_heap *g = state;
	int r;

	(void)pthread_mutex_lock(&g->busy);
	r = go_heap_collect_busy(g, ret_reading, err);
	(void)pthread_mutex_unlock(&g->busy);
	return r;
}

const struct reader_ops reader_go_heap = {
	.name = "go-heap",
	.family = "go_heap",
	.probe = go_heap_probe,
	.open = go_heap_open,
	.collect = go_heap_collect,
	.close = go_heap_close,
};
