/*
 * src/java/collect/collect.h: the profiles of one JVM, interval by interval.
 *
 *   start   keep read take take   keep read take take   ...   finish read stop take
 *
 * Three ways lead there: the JVM's own recorder (java/recorder/recording.h), our own library where
 * the JVM has none (java/jvmti/jvmti.h), and async-profiler where the user gives it
 * (async_profiler.h).
 *
 * There are two sides. start, keep, finish and stop give commands to the JVM, and wait for its
 * answers, up to two minutes where it hangs. The others only read, and do not wait. Each side is
 * one thread's at a time, and the two may be at work at the same time.
 *
 * Nothing is missed between two readings. What happened is there within a second or so; of JDK 8
 * and 11 when keep or finish has begun a new file, of async-profiler when it has finished a chunk.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "java/detect.h"
#include "java/jfr/profiler.h"
#include "java/recorder/recording.h"
#include "proc/id.h"

struct java_collect_options {
	struct java_recording_options recording;
	struct java_jfr_builder_options profile;
	uint64_t interval_ns;	   /* between readings, at most; 0: a few seconds */
	const char *async_library; /* libasyncProfiler.so, to be used instead; or NULL */
	bool recorder_only;	   /* nothing is loaded into the JVM */
};

struct java_collect_stats {
	struct java_jfr_profiler_stats profiler;
	uint64_t dropped; /* events that what is in the JVM had no room for */
	uint64_t unread;  /* that make no sense */
	uint64_t broken;  /* files that could not be read, or not to their end; and */
	char why[256];	  /* of the last of them */
};

/* In ns since 1970. */
struct java_collect_window {
	int64_t from_ns;
	int64_t to_ns;
};

struct java_collect; /* opaque */

/*
 * As java_recording_start(). What an earlier sonde with the same state_dir has left in the JVM is
 * taken out before.
 */
int java_collect_start(const struct proc_id *id, const struct java_collect_options *options,
		       struct java_collect **ret_collect, struct err *err);
/*
 * To be called each interval, before it is read. -EBUSY, -ESRCH, -ENOENT as in
 * java_recording_check(): it has ended, and there is only what was read so far, and stop.
 */
int java_collect_keep(struct java_collect *c, struct err *err);
/* All that has happened until now is there after a reading, or after stop. */
int java_collect_finish(struct java_collect *c, struct err *err);
/* Nothing of ours is left in the JVM; as java_recording_stop(). */
int java_collect_stop(struct java_collect *c, struct err *err);
void java_collect_free(struct java_collect *c); /* stops it unless it is; NULL is fine */
DEFINE_CLEANUP(struct java_collect, java_collect_free)

const struct java_vm *java_collect_vm(const struct java_collect *c);
const char *java_collect_name(const struct java_collect *c); /* "jfr", "jvmti", "async-profiler" */
bool java_collect_has(const struct java_collect *c, enum java_jfr_profile_kind kind);

/* All that is there by now; so much at a time that a JVM that never ends cannot keep us. */
int java_collect_read(struct java_collect *c, struct err *err);
/* From when until when what was read happened. */
struct java_collect_window java_collect_window(const struct java_collect *c);
/* What was read since it was taken last, also an empty profile; the window goes into it. */
int java_collect_take(struct java_collect *c, enum java_jfr_profile_kind kind,
		      const struct java_collect_window *window, struct profile **ret_profile,
		      struct err *err);
void java_collect_stats(struct java_collect *c, struct java_collect_stats *ret_stats);
/* Events that are in no profile, for whatever reason; only grows. */
uint64_t java_collect_lost(struct java_collect *c);
/*
 * Whether the JVM may hide allocations (java_hides_allocs()). *ret_bytes of them, in *ret_percent
 * of all, are missing at least; both 0 where that is not known.
 */
bool java_collect_hidden(struct java_collect *c, uint64_t *ret_bytes, unsigned int *ret_percent);
