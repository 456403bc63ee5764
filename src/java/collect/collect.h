/*
 * src/java/collect/collect.h: the profiles of one JVM, interval by interval.
 *
 *   start   keep read take take   keep read take take   ...   finish read stop take
 *
 * There are three methods: the JVM's own recorder (java/recorder/recording.h); our own library
 * (java/jvmti/jvmti.h) if the JVM has no recorder, or if its first use would slow the JVM down
 * (java/recorder/cost.h); and async-profiler if the user provides it (async_profiler.h).
 *
 * There are two sides. start, keep, finish and stop send commands to the JVM and wait for its
 * answers, up to two minutes if it hangs. The others only read, and never wait. Each side may be
 * used by one thread at a time, and both at the same time.
 *
 * Reads leave no gaps. Events are available within a second or so; with JDK 8 and 11, once keep or
 * finish has started a new file; with async-profiler, once it has finished a chunk.
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
	uint64_t interval_ns;	   /* maximum between reads; 0: a few seconds */
	const char *async_library; /* libasyncProfiler.so, to use instead; or NULL */
	bool recorder_only;	   /* load nothing into the JVM, whatever its recorder costs */
};

/* Why that method. */
enum java_collect_choice {
	JAVA_COLLECT_USUAL,
	JAVA_COLLECT_NO_RECORDER, /* our library: the JVM has no recorder */
	JAVA_COLLECT_GENTLE,	  /* our library: the recorder would slow the JVM down */
	JAVA_COLLECT_COSTLY,	  /* the recorder, although it has slowed the JVM down */
};

struct java_collect_stats {
	struct java_jfr_profiler_stats profiler;
	uint64_t dropped; /* events dropped inside the JVM, for lack of room */
	uint64_t unread;  /* invalid events */
	uint64_t broken;  /* files that could not be read, or not to their end */
	char why[256];	  /* the reason of the last of them */
	bool is_calm;	  /* short waits for java.util.concurrent are left out, see recording.h */
	bool no_parks;	  /* waits for locks of java.util.concurrent are not seen */
};

/* In ns since 1970. */
struct java_collect_window {
	int64_t from_ns;
	int64_t to_ns;
};

struct java_collect; /* opaque */

/*
 * Like java_recording_start(). First undoes what an earlier sonde with the same state_dir left in
 * the JVM.
 */
int java_collect_start(const struct proc_id *id, const struct java_collect_options *options,
		       struct java_collect **ret_collect, struct err *err);
/*
 * Call each interval, before reading. -EBUSY, -ESRCH, -ENOENT as in java_recording_check(): it has
 * ended; what was read remains, and only stop may follow.
 */
int java_collect_keep(struct java_collect *c, struct err *err);
/* Makes everything that has happened so far available to the next read, or to stop. */
int java_collect_finish(struct java_collect *c, struct err *err);
/* Leaves nothing of ours in the JVM; like java_recording_stop(). */
int java_collect_stop(struct java_collect *c, struct err *err);
void java_collect_free(struct java_collect *c); /* stops it if necessary; NULL is fine */
DEFINE_CLEANUP(struct java_collect, java_collect_free)

const struct java_vm *java_collect_vm(const struct java_collect *c);
const char *java_collect_name(const struct java_collect *c); /* "jfr", "jvmti", "async-profiler" */
enum java_collect_choice java_collect_choice(const struct java_collect *c);
/* Why it has no such profile; NULL if it has. */
const char *java_collect_lacks(const struct java_collect *c, enum java_jfr_profile_kind kind);

/* Reads everything available, up to a limit per call, so that a JVM cannot hold us up. */
int java_collect_read(struct java_collect *c, struct err *err);
/* The time span covered by what was read. */
struct java_collect_window java_collect_window(const struct java_collect *c);
/*
 * The profile of what was read since the last take, possibly empty; sets its times from the window.
 */
int java_collect_take(struct java_collect *c, enum java_jfr_profile_kind kind,
		      const struct java_collect_window *window, struct profile **ret_profile,
		      struct err *err);
void java_collect_stats(struct java_collect *c, struct java_collect_stats *ret_stats);
/* Events in no profile, for whatever reason; only grows. */
uint64_t java_collect_lost(struct java_collect *c);
/*
 * Whether the JVM may hide allocations (java_hides_allocs()). At least *ret_bytes, *ret_percent of
 * all, are missing; both 0 if unknown.
 */
bool java_collect_hidden(struct java_collect *c, uint64_t *ret_bytes, unsigned int *ret_percent);
