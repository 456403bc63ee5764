/*
 * src/java/collect/collector_recorder.c: the JVM's own recorder (java/recorder/recording.h), by
 * following its files.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "java/collect/collector.h"
#include "java/jfr/follow.h"

/* Per read: many times what a JVM writes between two. The rest follows with the next one. */
#define RECORDER_MAX_EVENTS ((uint64_t)4 << 20)
/* More parks of idle threads take the JVM a percent of a CPU. */
#define RECORDER_MAX_IDLE_PER_SEC 1000

struct recorder {
	/* Used by the side that sends commands; the descriptor of its directory never changes. */
	struct java_recording *recording;
	uint64_t kept_ns, idle_before;
	/* Waits of idle threads that were read; between the two sides. */
	atomic_uint_least64_t idle;
	atomic_bool is_calm;
	/* Used by the side that reads. */
	struct java_jfr_follow *follow;
	struct java_jfr_profiler *profiler;
	uint64_t unread;	/* of closed parsers, and */
	uint64_t parser_unread; /* of the current one */
};

static void recorder_free(void *state)
{
	struct recorder *c = state;

	if (!c)
		return;
	/* It borrows the directory of the recording. */
	java_jfr_follow_close(c->follow);
	java_recording_free(c->recording);
	java_jfr_profiler_free(c->profiler);
	free(c);
}

static int recorder_open(struct recorder *c, const struct java_jfr_builder_options *options,
			 struct err *err)
{
	struct java_jfr_options jfr = {.live = true};
	int r = java_jfr_profiler_new(options, &c->profiler, err);

	jfr.queries = java_jfr_profiler_queries(&jfr.n_queries);
	/* TLAB events of older releases have no weight to correct. */
	if (r == 0 && java_recording_vm(c->recording)->major >= JAVA_RECORDING_WEIGHTS_MAJOR)
		java_jfr_profiler_use_counts(c->profiler);
	return r < 0 ? r
		     : java_jfr_follow_open(java_recording_dirfd(c->recording), &jfr, &c->follow,
					    err);
}

static int recorder_start(const struct proc_id *id, const struct java_collect_options *o,
			  void **ret_state, struct err *err)
{
	struct recorder *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_oom(err);
	r = java_recording_start(id, &o->recording, &c->recording, err);
	if (r == 0)
		r = recorder_open(c, &o->profile, err);
	if (r < 0) {
		recorder_free(c);
		return r;
	}
	c->kept_ns = clock_mono_ns();
	*ret_state = c;
	return 0;
}

static const struct java_vm *recorder_vm(const void *state)
{
	const struct recorder *c = state;

	return java_recording_vm(c->recording);
}

/* A failure is no reason to end it. */
static void recorder_calm(struct recorder *c)
{
	uint64_t now = clock_mono_ns(), idle = atomic_load(&c->idle);
	uint64_t more = idle - c->idle_before, passed = now - c->kept_ns;

	if (passed < NS_PER_SEC || atomic_load(&c->is_calm))
		return;
	c->idle_before = idle;
	c->kept_ns = now;
	if (more / RECORDER_MAX_IDLE_PER_SEC >= passed / NS_PER_SEC)
		atomic_store(&c->is_calm, java_recording_calm(c->recording, NULL) == 0);
}

static int recorder_keep(void *state, struct err *err)
{
	struct recorder *c = state;
	int r = java_recording_check(c->recording, err);

	if (r == 0)
		recorder_calm(c);
	if (r == 0 && !java_recording_is_live(c->recording))
		r = java_recording_rotate(c->recording, err);
	return r;
}

static int recorder_finish(void *state, struct err *err)
{
	struct recorder *c = state;

	return java_recording_rotate(c->recording, err);
}

/* A parser that met a malformed file is replaced, and its counter starts again. */
static void recorder_count(struct recorder *c)
{
	const struct java_jfr *parser = java_jfr_follow_parser(c->follow);
	uint64_t now = 0;

	if (parser)
		now = java_jfr_stats(parser)->malformed + java_jfr_stats(parser)->unknown;
	if (now < c->parser_unread)
		c->unread += c->parser_unread;
	c->parser_unread = now;
}

static int recorder_read(void *state, struct err *err)
{
	struct recorder *c = state;
	struct java_jfr_profiler_stats stats;
	struct java_jfr_event e;
	int r = 0;

	for (uint64_t n = 0; r == 0 && n < RECORDER_MAX_EVENTS; n++) {
		r = java_jfr_follow_next(c->follow, &e, err);
		if (r <= 0)
			break;
		r = java_jfr_profiler_add(c->profiler, java_jfr_follow_parser(c->follow), &e, err);
	}
	recorder_count(c);
	java_jfr_profiler_stats(c->profiler, &stats);
	atomic_store(&c->idle, stats.idle_waits);
	return r;
}

static int recorder_take(void *state, enum java_jfr_profile_kind kind,
			 const struct java_collect_window *w, struct profile **ret_profile,
			 struct err *err)
{
	struct recorder *c = state;

	return java_jfr_profiler_take(c->profiler, kind, w->from_ns, w->to_ns - w->from_ns,
				      ret_profile, err);
}

static int recorder_stop(void *state, struct err *err)
{
	struct recorder *c = state;

	return java_recording_stop(c->recording, err);
}

/*
 * The files tell how far they reach, by the JVM's clock; a JVM's answer may come much later. The
 * value is untrusted.
 */
static void recorder_until(const void *state, struct java_collect_window *w)
{
	const struct recorder *c = state;
	const struct java_jfr *parser = java_jfr_follow_parser(c->follow);
	const struct java_jfr_stats *stats = parser ? java_jfr_stats(parser) : NULL;
	int64_t end_ns;

	if (stats && !__builtin_add_overflow(stats->start_ns, stats->duration_ns, &end_ns) &&
	    end_ns > w->from_ns && end_ns < w->to_ns)
		w->to_ns = end_ns;
}

static void recorder_stats(void *state, struct java_collect_stats *s)
{
	struct recorder *c = state;
	const struct java_jfr_follow_stats *files = java_jfr_follow_stats(c->follow);

	java_jfr_profiler_stats(c->profiler, &s->profiler);
	s->unread = c->unread + c->parser_unread;
	s->broken = files->broken;
	s->is_calm = atomic_load(&c->is_calm);
	(void)snprintf(s->why, sizeof(s->why), "%.255s", files->why);
}

const struct java_collector_ops java_collector_recorder = {
	.name = "jfr",
	.has_cpu = true,
	.start = recorder_start,
	.vm = recorder_vm,
	.keep = recorder_keep,
	.finish = recorder_finish,
	.read = recorder_read,
	.take = recorder_take,
	.stop = recorder_stop,
	.until = recorder_until,
	.stats = recorder_stats,
	.free = recorder_free,
};
