/*
 * src/java/collect/async_profiler.h: CPU, allocations and locks with async-profiler, if the user
 * provides its library.
 *
 * It is copied into the private file system for recordings (java/jvmti/place.h), loaded by command
 * and told to write a JFR file there. Finished chunks are read and removed from the file. A JVM
 * cannot unload it; a later start reuses it. A JVM that already has someone else's async-profiler
 * is not touched: there can be only one session at a time.
 *
 * If sonde is killed, it stops after ten minutes; until then it restarts every five.
 *
 * The library must match the JVM's C library, which is up to the user.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "java/detect.h"
#include "java/jfr/builder.h"
#include "java/jfr/profiler.h"
#include "proc/id.h"
#include "proc/maps.h"

struct java_async; /* opaque */

struct java_async_options {
	const char *state_dir; /* where changes to targets are noted */
	const char *library;   /* libasyncProfiler.so, in our file system */
	struct java_jfr_builder_options profile;
	uint64_t cpu_interval_ns; /* 0: 10 ms */
	uint64_t alloc_bytes;	  /* between samples; 0: 2 MB */
	uint64_t lock_ns;	  /* shorter waits are sampled; 0: 1 ms */
	uint64_t chunk_ns;	  /* how often it finishes a chunk; 0: 5 s, the minimum */
};

/* -EBUSY: another sonde, or another async-profiler. Otherwise like java_jvmti_start(). */
int java_async_start(const struct proc_id *id, const struct java_async_options *options,
		     struct java_async **ret_async, struct err *err);
/*
 * Reads the chunks finished since, and renews the session in time, which waits for the JVM; _take()
 * and _stats() in another thread do not wait meanwhile. -ESRCH, -EBADMSG; then only _stop() may
 * follow.
 */
int java_async_read(struct java_async *async, struct err *err);
/* The profile of what was read since the last take. */
int java_async_take(struct java_async *async, enum java_jfr_profile_kind kind, int64_t time_ns,
		    int64_t duration_ns, struct profile **ret_profile, struct err *err);
/* Ends it, reads the rest, and removes its files; like java_jvmti_stop(). */
int java_async_stop(struct java_async *async, struct err *err);
void java_async_free(struct java_async *async); /* stops it if necessary; NULL is fine */
DEFINE_CLEANUP(struct java_async, java_async_free)

const struct java_vm *java_async_vm(const struct java_async *async);
void java_async_stats(struct java_async *async, struct java_jfr_profiler_stats *ret_stats);

/*
 * The owner of the async-profiler in a process: 0 none, 1 us, with the path as the JVM knows it in
 * dst; -EBUSY someone else.
 */
int java_async_find(const struct proc_maps *maps, char *dst, size_t cap);
/*
 * The length of a chunk, from its header (at least 68 bytes); 0 while it is being written.
 * -EBADMSG.
 */
#define JAVA_ASYNC_HEADER_BYTES 68
#define JAVA_ASYNC_MAX_CHUNK ((uint64_t)128 << 20)
int64_t java_async_chunk_len(struct view header);
