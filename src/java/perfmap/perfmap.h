/*
 * src/java/perfmap/perfmap.h: makes a JVM write a perf map of its compiled code, for CPU profiles.
 *
 * HotSpot since JDK 17 does so on command, into /tmp/perf-PID.map of its own file system; since JDK
 * 22 into any file. It opens the file by name and follows links. So the file is created first,
 * owned by the JVM's user, and nothing is requested if something else is in its place. An existing
 * perf map written by the JVM or its user is used unchanged.
 *
 * What the JVM wrote is replaced atomically by the same with names as in recordings
 * (java/jfr/names.h). While being written it is unreadable to all, which is how
 * cpu/symbols/perfmap.h knows.
 *
 * Everything is first noted on disk (java/recorder/note.h), in a directory of its own, and removed
 * at the end, after kill -9 by the next start. One thread at a time.
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

/* JVMs before cannot. */
#define JAVA_PERFMAP_MAJOR 17
#define JAVA_PERFMAP_MIN_NS (15ULL * 1000000000)
/* Without the counters of a JVM it is not known whether it has compiled anything. */
#define JAVA_PERFMAP_BLIND_NS (60ULL * 1000000000)
/* What is behind that is left out. */
#define JAVA_PERFMAP_MAX_BYTES ((uint64_t)64 << 20)

struct java_perfmap_options {
	const char *state_dir; /* where is noted what we put into targets */
	/* Between two writings; 0: JAVA_PERFMAP_MIN_NS. Always 100 times what one takes. */
	uint64_t min_ns;
};

struct java_perfmap_stats {
	bool is_users;	   /* there was one already; it is not written by us */
	bool is_cut;	   /* the last one is not whole: a full disk, or our limit */
	uint64_t written;  /* how often, */
	uint64_t spent_ns; /* and how long the JVM took for it in all */
	uint64_t functions;
};

/*
 * Writes it for the first time. -ENOTSUP: this JVM cannot; -EPERM: something else is in its place;
 * -EBUSY: another sonde does it; -EAGAIN and others as java_attach_open(). Nothing stays in the
 * JVM's file system when it fails.
 */
int java_perfmap_start(const struct proc_id *id, const struct java_perfmap_options *options,
		       struct java_perfmap **ret_map, struct err *err);
/*
 * Writes it anew when code was compiled since, and it is time for that; 1 when it did. -ESRCH: the
 * process is gone.
 */
int java_perfmap_keep(struct java_perfmap *map, struct err *err);
/* Takes it out. The note stays for java_perfmaps_restore() when that fails. */
int java_perfmap_stop(struct java_perfmap *map, struct err *err);
void java_perfmap_free(struct java_perfmap *map); /* stops it unless it is; NULL is fine */
DEFINE_CLEANUP(struct java_perfmap, java_perfmap_free)

void java_perfmap_stats(const struct java_perfmap *map, struct java_perfmap_stats *ret_stats);

/*
 * Takes out what those of us left who used that directory and were killed. Returns how many notes
 * were done with.
 */
int java_perfmaps_restore(const char *state_dir, struct err *err);
