/* src/java/collect.c: see collect.h. */
#include "java/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "java/jfr_follow.h"
#include "java/recording_note.h"
#include "java/recording_undo.h"

/* Of one reading: many times what a JVM writes between two. The rest comes with the next one. */
#define COLLECT_MAX_EVENTS ((uint64_t)4 << 20)

struct java_collect {
	/* Of the side that gives commands; the descriptor of its directory does not change. */
	struct java_recording *recording;
	int64_t began_ns;
	/* Of the side that reads. */
	struct jfr_follow *follow;
	struct jfr_profiler *profiler;
	uint64_t unread;	/* of parsers that are no more, and */
	uint64_t parser_unread; /* of the one there is */
};

/*
 * The note of what an earlier one has left would be replaced by ours: it is done with first, under
 * the lock that whoever works on this JVM holds.
 */
static int collect_clear(const struct proc_id *id, const char *state_dir, struct err *err)
{
	_cleanup_free_ struct java_note *notes = NULL;
	_cleanup_close_ int lock = -1;
	size_t len;
	int r = java_notes_read(state_dir, &notes, &len, err);

	for (size_t i = 0; r == 0 && i < len; i++) {
		if (notes[i].id.pid != id->pid || notes[i].id.start_ticks != id->start_ticks)
			continue;
		if (lock < 0)
			r = java_recording_lock(id, &lock, err);
		if (r == 0)
			r = java_recording_undo(state_dir, &notes[i], err);
	}
	return r;
}

static int collect_open(struct java_collect *c, const struct jfr_builder_options *options,
			struct err *err)
{
	struct jfr_options jfr = {.live = true};
	int r = jfr_profiler_new(options, &c->profiler, err);

	jfr.queries = jfr_profiler_queries(&jfr.n_queries);
	return r < 0 ? r
		     : jfr_follow_open(java_recording_dirfd(c->recording), &jfr, &c->follow, err);
}

int java_collect_start(const struct proc_id *id, const struct java_collect_options *o,
		       struct java_collect **ret_collect, struct err *err)
{
	_cleanup_(java_collect_freep) struct java_collect *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_oom(err);
	r = collect_clear(id, o->recording.state_dir, err);
	if (r == 0)
		r = java_recording_start(id, &o->recording, &c->recording, err);
	c->began_ns = (int64_t)clock_unix_ns();
	if (r == 0)
		r = collect_open(c, &o->profile, err);
	if (r == 0)
		*ret_collect = TAKE_PTR(c);
	return r;
}

void java_collect_free(struct java_collect *c)
{
	if (!c)
		return;
	/* It borrows the directory of the recording. */
	jfr_follow_close(c->follow);
	java_recording_free(c->recording);
	jfr_profiler_free(c->profiler);
	free(c);
}

int java_collect_keep(struct java_collect *c, struct err *err)
{
	int r = java_recording_check(c->recording, err);

	if (r == 0 && !java_recording_is_live(c->recording))
		r = java_recording_rotate(c->recording, err);
	return r;
}

int java_collect_finish(struct java_collect *c, struct err *err)
{
	return java_recording_rotate(c->recording, err);
}

int java_collect_stop(struct java_collect *c, struct err *err)
{
	return java_recording_stop(c->recording, err);
}

const struct java_vm *java_collect_vm(const struct java_collect *c)
{
	return java_recording_vm(c->recording);
}

/*
 * The files say until when they go, by the JVM's clock; an answer of it may come much later. What
 * they say may be anything.
 */
struct java_collect_window java_collect_window(const struct java_collect *c)
{
	const struct jfr *parser = jfr_follow_parser(c->follow);
	const struct jfr_stats *stats = parser ? jfr_stats(parser) : NULL;
	struct java_collect_window w = {.from_ns = c->began_ns, .to_ns = (int64_t)clock_unix_ns()};
	int64_t end_ns;

	if (stats && !__builtin_add_overflow(stats->start_ns, stats->duration_ns, &end_ns) &&
	    end_ns > w.from_ns && end_ns < w.to_ns)
		w.to_ns = end_ns;
	return w;
}

/* A parser that met a malformed file is replaced, and begins to count anew. */
static void collect_count(struct java_collect *c)
{
	const struct jfr *parser = jfr_follow_parser(c->follow);
	uint64_t now = 0;

	if (parser)
		now = jfr_stats(parser)->malformed + jfr_stats(parser)->unknown;
	if (now < c->parser_unread)
		c->unread += c->parser_unread;
	c->parser_unread = now;
}

int java_collect_read(struct java_collect *c, struct err *err)
{
	struct jfr_event e;
	int r = 0;

	for (uint64_t n = 0; r == 0 && n < COLLECT_MAX_EVENTS; n++) {
		r = jfr_follow_next(c->follow, &e, err);
		if (r <= 0)
			break;
		r = jfr_profiler_add(c->profiler, jfr_follow_parser(c->follow), &e, err);
	}
	collect_count(c);
	return r;
}

int java_collect_take(struct java_collect *c, enum jfr_profile_kind kind, int64_t time_ns,
		      int64_t duration_ns, struct profile **ret_profile, struct err *err)
{
	return jfr_profiler_take(c->profiler, kind, time_ns, duration_ns, ret_profile, err);
}

void java_collect_stats(const struct java_collect *c, struct java_collect_stats *ret_stats)
{
	const struct jfr_follow_stats *files = jfr_follow_stats(c->follow);

	jfr_profiler_stats(c->profiler, &ret_stats->profiler);
	ret_stats->unread = c->unread + c->parser_unread;
	ret_stats->broken = files->broken;
	(void)snprintf(ret_stats->why, sizeof(ret_stats->why), "%.255s", files->why);
}

uint64_t java_collect_lost(const struct java_collect *c)
{
	struct java_collect_stats s;

	java_collect_stats(c, &s);
	return s.profiler.lost + s.profiler.cpu_dropped + s.unread + s.broken;
}
