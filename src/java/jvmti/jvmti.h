/*
 * src/java/jvmti/jvmti.h: allocations and lock waits from a small library in the JVM, if its own
 * recorder cannot be used (java/recorder/recording.h): there is no jdk.jfr module, or the JVM would
 * suffer (java/recorder/cost.h). JDK 11 and later.
 *
 * The library (java/agent_lib/) is embedded in this program. It is placed into the private file
 * system for recordings (place.h) and loaded by command. A JVM cannot unload it, so after the end
 * it holds no memory but its own code, and costs nothing. It stops by itself when sonde is gone, at
 * the first event after options.idle_ns. A second start reuses the loaded library.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "java/detect.h"
#include "java/jfr/builder.h"
#include "java/jfr/profiler.h"
#include "proc/id.h"

struct java_jvmti; /* opaque */

struct java_jvmti_options {
	const char *state_dir; /* where changes to targets are noted */
	struct java_jfr_builder_options profile;
	uint32_t stack_depth; /* 0: 128; at most 256 */
	uint64_t idle_ns;     /* 0: 60 s; must exceed the time between reads */
};

/*
 * -ENOTSUP: before JDK 11, or it loads no libraries, or accepts no commands. -EBUSY: another sonde,
 * or another library samples allocations. -EPERM. -EAGAIN: it is still starting, or stopped.
 */
int java_jvmti_start(const struct proc_id *id, const struct java_jvmti_options *options,
		     struct java_jvmti **ret_jvmti, struct err *err);
/*
 * Reads what was written since; call it often enough for the ring (4 MB) and for idle_ns. -ESRCH:
 * the process has exited. -ENOENT: the library has ended, because nobody read for idle_ns.
 * -EBADMSG: its output is invalid; only _stop() may follow.
 */
int java_jvmti_read(struct java_jvmti *jvmti, struct err *err);
/*
 * The profile of what was read since the last take: JAVA_JFR_PROFILE_ALLOC or
 * JAVA_JFR_PROFILE_LOCK.
 */
int java_jvmti_take(struct java_jvmti *jvmti, enum java_jfr_profile_kind kind, int64_t time_ns,
		    int64_t duration_ns, struct profile **ret_profile, struct err *err);

/*
 * Tells it to end, and waits for the JVM; another thread may read or take meanwhile. Call it before
 * _stop() if that must not wait.
 */
int java_jvmti_end(struct java_jvmti *jvmti, struct err *err);
/*
 * Ends it, reads the rest, and removes its files. On failure the note stays for
 * java_recordings_restore(). Profiles can still be taken.
 */
int java_jvmti_stop(struct java_jvmti *jvmti, struct err *err);
void java_jvmti_free(struct java_jvmti *jvmti); /* stops it if necessary; NULL is fine */
DEFINE_CLEANUP(struct java_jvmti, java_jvmti_free)

const struct java_vm *java_jvmti_vm(const struct java_jvmti *jvmti);

struct java_jvmti_stats {
	uint64_t events[JAVA_JFR_PROFILE_N];
	uint64_t dropped;	 /* by the library, for lack of room */
	uint64_t lost;		 /* over our memory limit */
	uint64_t interval_bytes; /* between samples, currently */
	uint64_t truncated, no_stack;
	uint64_t idle_waits; /* omitted: of threads without work */
	int64_t idle_ns;
	bool sees_parks; /* waits for locks of java.util.concurrent, not only for monitors */
};
/* Totals. The total of n samples has a relative error of about 1 / sqrt(n). */
void java_jvmti_stats(const struct java_jvmti *jvmti, struct java_jvmti_stats *ret_stats);
