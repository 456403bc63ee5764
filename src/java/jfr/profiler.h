/*
 * src/java/jfr/profiler.h: CPU, allocation and lock profiles from the events of a recording.
 *
 * CPU: samples, and cpu if time is known: jdk.CPUTimeSample (JDK 25), or async-profiler's
 * jdk.ExecutionSample. The JVM's own ExecutionSample picks a few running threads at a time: its
 * count is not time, and is given as a count.
 *
 * Allocations: alloc_space from jdk.ObjectAllocationSample, or from the two TLAB events, which
 * record object sizes and thus also give alloc_objects. A recording may have both for the same
 * allocations: they are never added. jdk.ThreadAllocationStatistics, if recorded, gives the total,
 * with or without events.
 *
 * The allocated class is the leaf.
 *
 * Locks: contentions and delay from jdk.JavaMonitorEnter, and from jdk.ThreadPark if the thread
 * waits for a lock. The lock's class is the leaf. Threads that wait for work, or for their turn to
 * wait for a connection, are counted apart.
 *
 * The weight of an ObjectAllocationSample is what the thread allocated since its previous sample.
 * The first one of a thread older than the recording covers everything since the thread started,
 * and is omitted. Younger threads are known by jdk.ThreadStart. See also totals.h.
 */
#pragma once

#include "java/jfr/builder.h"
#include "java/jfr/jfr.h"
#include "profile/profile.h"

enum java_jfr_profile_kind {
	JAVA_JFR_PROFILE_CPU,
	JAVA_JFR_PROFILE_ALLOC,
	JAVA_JFR_PROFILE_LOCK,
	JAVA_JFR_PROFILE_N,
};

struct java_jfr_profiler_stats {
	uint64_t events[JAVA_JFR_PROFILE_N]; /* used for the profiles */
	uint64_t idle_waits;		     /* omitted: of threads without work */
	int64_t idle_ns;
	uint64_t first_samples; /* omitted: how many, and their weight */
	uint64_t first_bytes;
	/*
	 * According to TLAB events; and as counted by threads themselves, except those that have
	 * ended.
	 */
	int64_t tlab_bytes, counted_bytes;
	uint64_t cpu_failed;  /* samples without a stack; their time counts */
	uint64_t cpu_dropped; /* lost according to the JVM */
	uint64_t no_stack, truncated;
	uint64_t lost;	  /* over our memory limit */
	bool cpu_is_time; /* the CPU profile has times, not only counts */
};

struct java_jfr_profiler;

/* The queries a parser needs for its events to be added. */
const struct java_jfr_query *java_jfr_profiler_queries(size_t *ret_len);

int java_jfr_profiler_new(const struct java_jfr_builder_options *options,
			  struct java_jfr_profiler **ret_profiler, struct err *err);
void java_jfr_profiler_free(struct java_jfr_profiler *p);
DEFINE_CLEANUP(struct java_jfr_profiler, java_jfr_profiler_free)

/*
 * Lets the samples of each thread add up to its own counts (jdk.ThreadAllocationStatistics), if it
 * has no virtual threads, whose allocations the counts of others include. For a recording whose
 * settings are ours.
 */
void java_jfr_profiler_use_counts(struct java_jfr_profiler *p);
/* Adds an event just returned by the parser. */
int java_jfr_profiler_add(struct java_jfr_profiler *p, const struct java_jfr *j,
			  const struct java_jfr_event *e, struct err *err);
/* Adds all events available now. */
int java_jfr_profiler_read(struct java_jfr_profiler *p, struct java_jfr *j, struct err *err);
/*
 * The profile of what was added since the last take, possibly empty; known threads stay known.
 * time_ns and duration_ns go into it.
 */
int java_jfr_profiler_take(struct java_jfr_profiler *p, enum java_jfr_profile_kind kind,
			   int64_t time_ns, int64_t duration_ns, struct profile **ret_profile,
			   struct err *err);
/* Totals. Those of allocations are up to date after taking the profile. */
void java_jfr_profiler_stats(const struct java_jfr_profiler *p,
			     struct java_jfr_profiler_stats *ret_stats);
