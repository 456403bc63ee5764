/*
 * src/java/perfmap/perfmap.h: makes a JVM write a perf map of its compiled code, for CPU profiles.
 *
 * HotSpot since JDK 17 does so on command, into /tmp/perf-PID.map of its own file system; since JDK
 * 22 into any file. It opens the file by name and follows links. So the file is created first,
 * owned by the JVM's user, and nothing is requested if something else is in its place. An existing
 * perf map written by the JVM or its user is used unchanged.
 *
 * The JVM's output is replaced atomically by a copy with names as in recordings (java/jfr/names.h).
 * While being written it is unreadable to all, which is how cpu/symbols/perfmap.h knows.
 *
 * Everything is first noted on disk (java/recorder/note.h), in a separate directory, and removed at
 * the end, after kill -9 by the next start. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "proc/id.h"

struct java_perfmap; /* opaque */

/* Older JVMs cannot. */
#define JAVA_PERFMAP_MAJOR 17
#define JAVA_PERFMAP_MIN_NS (15ULL * 1000000000)
/* Without its counters, it is unknown whether a JVM has compiled anything. */
#define JAVA_PERFMAP_BLIND_NS (60ULL * 1000000000)
/* The rest is omitted. */
#define JAVA_PERFMAP_MAX_BYTES ((uint64_t)64 << 20)

struct java_perfmap_options {
	const char *state_dir; /* where changes to targets are noted */
	/* Between two writes; 0: JAVA_PERFMAP_MIN_NS. At least 100 times as long as one takes. */
	uint64_t min_ns;
};

struct java_perfmap_stats {
	bool is_users;	   /* there was one already; we do not write it */
	bool is_cut;	   /* the last one is incomplete: a full disk, or our limit */
	uint64_t written;  /* number of writes, */
	uint64_t spent_ns; /* and the JVM's total time for them */
	uint64_t functions;
};

/*
 * Writes it for the first time. -ENOTSUP: this JVM cannot; -EPERM: something else is in its place;
 * -EBUSY: another sonde does it; -EAGAIN and others as in java_attach_open(). Leaves nothing in the
 * JVM's file system on failure.
 */
int java_perfmap_start(const struct proc_id *id, const struct java_perfmap_options *options,
		       struct java_perfmap **ret_map, struct err *err);
/*
 * Writes it again if code was compiled since and it is due; 1 if it did. -ESRCH: the process has
 * exited.
 */
int java_perfmap_keep(struct java_perfmap *map, struct err *err);
/* Removes it. On failure the note stays for java_perfmaps_restore(). */
int java_perfmap_stop(struct java_perfmap *map, struct err *err);
void java_perfmap_free(struct java_perfmap *map); /* stops it if necessary; NULL is fine */
DEFINE_CLEANUP(struct java_perfmap, java_perfmap_free)

void java_perfmap_stats(const struct java_perfmap *map, struct java_perfmap_stats *ret_stats);

/*
 * Removes what killed sondes that used that directory have left. Returns how many notes were
 * settled.
 */
int java_perfmaps_restore(const char *state_dir, struct err *err);
