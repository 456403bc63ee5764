/*
 * src/java/collect/collect.c: see collect.h.
 *
 * The JVM's own recorder comes first: it needs nothing loaded into the JVM. If it is not available,
 * our own library may do; async-profiler is used on request.
 */
#include "java/collect/collect.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "java/collect/collector.h"
#include "java/recorder/cost.h"
#include "java/recorder/note.h"
#include "java/recorder/undo.h"

struct java_collect {
	const struct java_collector_ops *collector;
	void *state;
	enum java_collect_choice choice;
	bool has_rival; /* for CPU time */
	struct proc_id id;
	int64_t began_ns;
	/* Protects what is read; never held while waiting for the JVM. */
	pthread_mutex_t reading;
	atomic_bool ending; /* stop reads the rest */
	atomic_int broken;  /* why it can no longer be read; 0: it can */
};

/*
 * Our note would replace the one an earlier sonde left, so undo that one first, with the lock held
 * by whoever works on this JVM.
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

static int collect_by(struct java_collect *c, const struct java_collector_ops *collector,
		      enum java_collect_choice choice, const struct java_collect_options *o,
		      struct err *err)
{
	c->collector = collector;
	c->choice = choice;
	return collector->start(&c->id, o, &c->state, err);
}

/* Report the error of the recorder: that is what a user can fix. */
static int collect_begin(struct java_collect *c, const struct java_collect_options *options,
			 struct err *err)
{
	struct java_collect_options o = *options;
	struct java_vm vm = {};
	bool costly;
	int r;

	if (o.async_library)
		return collect_by(c, &java_collector_async, JAVA_COLLECT_USUAL, &o, err);
	r = java_detect_pid(c->id.pid, &vm, err);
	if (r < 0)
		return r;
	costly = java_recorder_is_costly(&vm);
	c->has_rival = java_recorder_has_rival(&vm);
	o.recording.cpu_time &= !c->has_rival;
	if (costly && !o.recorder_only) {
		r = collect_by(c, &java_collector_library, JAVA_COLLECT_GENTLE, &o, err);
		/* If it is only busy, it may work later; the recorder would do harm now. */
		if (r != -ENOTSUP)
			return r;
	}
	r = collect_by(c, &java_collector_recorder,
		       costly ? JAVA_COLLECT_COSTLY : JAVA_COLLECT_USUAL, &o, err);
	if (r != -ENOTSUP || o.recorder_only)
		return r;
	return collect_by(c, &java_collector_library, JAVA_COLLECT_NO_RECORDER, &o, NULL) == 0 ? 0
											       : r;
}

int java_collect_start(const struct proc_id *id, const struct java_collect_options *o,
		       struct java_collect **ret_collect, struct err *err)
{
	struct java_collect *c = calloc(1, sizeof(*c));
	int r;

	if (!c || pthread_mutex_init(&c->reading, NULL)) {
		free(c);
		return err_oom(err);
	}
	c->id = *id;
	r = collect_clear(id, o->recording.state_dir, err);
	if (r == 0)
		r = collect_begin(c, o, err);
	c->began_ns = (int64_t)clock_unix_ns();
	if (r < 0) {
		java_collect_free(c);
		return r;
	}
	*ret_collect = c;
	return 0;
}

void java_collect_free(struct java_collect *c)
{
	if (!c)
		return;
	if (c->state)
		c->collector->free(c->state);
	(void)pthread_mutex_destroy(&c->reading);
	free(c);
}

/* If it can no longer be read, it has ended, even if the JVM goes on. */
static int collect_read(struct java_collect *c, struct err *err)
{
	int r = atomic_load(&c->ending) ? 0 : c->collector->read(c->state, err);

	if (r < 0 && r != -ENOMEM && r != -EAGAIN)
		atomic_store(&c->broken, r);
	if (r == -ESRCH && !proc_id_gone(&c->id))
		r = 0;
	return r;
}

int java_collect_keep(struct java_collect *c, struct err *err)
{
	if (c->collector->keep)
		return c->collector->keep(c->state, err);
	if (proc_id_gone(&c->id))
		return err_set(err, -ESRCH, "process %d has exited", (int)c->id.pid);
	if (atomic_load(&c->broken))
		return err_set(err, -ENOENT, "process %d: %s has stopped", (int)c->id.pid,
			       c->collector->name);
	return 0;
}

int java_collect_finish(struct java_collect *c, struct err *err)
{
	return c->collector->finish ? c->collector->finish(c->state, err) : 0;
}

int java_collect_stop(struct java_collect *c, struct err *err)
{
	int r, stopped;

	if (!c->collector->end)
		return c->collector->stop(c->state, err);
	atomic_store(&c->ending, true);
	r = c->collector->end(c->state, err);
	(void)pthread_mutex_lock(&c->reading);
	stopped = c->collector->stop(c->state, r < 0 ? NULL : err);
	(void)pthread_mutex_unlock(&c->reading);
	return r < 0 ? r : stopped;
}

const struct java_vm *java_collect_vm(const struct java_collect *c)
{
	return c->collector->vm(c->state);
}

const char *java_collect_name(const struct java_collect *c)
{
	return c->collector->name;
}

enum java_collect_choice java_collect_choice(const struct java_collect *c)
{
	return c->choice;
}

const char *java_collect_lacks(const struct java_collect *c, enum java_jfr_profile_kind kind)
{
	if (kind != JAVA_JFR_PROFILE_CPU)
		return NULL;
	if (!c->collector->has_cpu)
		return "the JVM's recorder is not in use, so it has no CPU-time profile";
	if (c->has_rival)
		return "another profiler in the JVM samples its CPU time (it handles SIGPROF)";
	return NULL;
}

int java_collect_read(struct java_collect *c, struct err *err)
{
	int r;

	if (!c->collector->read)
		return 0;
	(void)pthread_mutex_lock(&c->reading);
	r = collect_read(c, err);
	(void)pthread_mutex_unlock(&c->reading);
	return r;
}

struct java_collect_window java_collect_window(const struct java_collect *c)
{
	struct java_collect_window w = {.from_ns = c->began_ns, .to_ns = (int64_t)clock_unix_ns()};

	if (c->collector->until)
		c->collector->until(c->state, &w);
	return w;
}

int java_collect_take(struct java_collect *c, enum java_jfr_profile_kind kind,
		      const struct java_collect_window *window, struct profile **ret_profile,
		      struct err *err)
{
	int r;

	(void)pthread_mutex_lock(&c->reading);
	r = c->collector->take(c->state, kind, window, ret_profile, err);
	(void)pthread_mutex_unlock(&c->reading);
	return r;
}

void java_collect_stats(struct java_collect *c, struct java_collect_stats *ret_stats)
{
	struct java_collect_stats s = {0};

	(void)pthread_mutex_lock(&c->reading);
	c->collector->stats(c->state, &s);
	(void)pthread_mutex_unlock(&c->reading);
	*ret_stats = s;
}

uint64_t java_collect_lost(struct java_collect *c)
{
	struct java_collect_stats s;

	java_collect_stats(c, &s);
	return s.profiler.lost + s.profiler.cpu_dropped + s.dropped + s.unread + s.broken;
}

bool java_collect_hidden(struct java_collect *c, uint64_t *ret_bytes, unsigned int *ret_percent)
{
	struct java_collect_stats s;
	int64_t all, hidden;

	if (!java_collect_vm(c)->hides_allocs)
		return false;
	java_collect_stats(c, &s);
	all = s.profiler.counted_bytes;
	hidden = MAX(all - s.profiler.tlab_bytes, INT64_C(0));
	*ret_bytes = (uint64_t)hidden;
	*ret_percent = all ? (unsigned int)((double)hidden / (double)all * 100) : 0;
	return true;
}
