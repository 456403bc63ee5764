/*
 * src/java/metrics.h: statistics of a HotSpot JVM (heap, garbage collections, safepoints, threads)
 * from its counters (hsperf.h), without contacting it.
 *
 * Allocations are not among them: HotSpot counts those only per garbage collection. Heap values are
 * as of the last garbage collection, unless the collector says otherwise.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "java/hsperf.h"
#include "pipeline/metrics.h"

#define JAVA_MAX_SPACES 16
#define JAVA_MAX_COLLECTORS 8

/* Which of the fields below are known. */
enum {
	JAVA_HAS_START = 1 << 0,
	JAVA_HAS_HEAP = 1 << 1,
	JAVA_HAS_SAFEPOINTS = 1 << 2,
	JAVA_HAS_THREADS = 1 << 3,
	JAVA_HAS_CLASSES = 1 << 4,
	JAVA_HAS_METASPACE = 1 << 5,
	JAVA_HAS_GC_CPU = 1 << 6, /* JDK 21 and later */
};

struct java_space {
	char generation[24]; /* "young", "old" */
	char name[24];	     /* "eden", "s0", "s1", "space" */
	uint64_t used_bytes;
	uint64_t size_bytes; /* committed */
};

struct java_collector {
	char name[48]; /* "G1 young collection pauses" */
	uint64_t count;
	uint64_t time_ns;
};

struct java_metrics {
	uint32_t has;
	char vm_name[64];
	char vm_version[64];
	char version[32]; /* of the JDK */
	uint64_t start_unix_ms;
	struct java_space spaces[JAVA_MAX_SPACES];
	size_t n_spaces;
	struct java_collector collectors[JAVA_MAX_COLLECTORS];
	size_t n_collectors;
	uint64_t safepoints;
	uint64_t safepoint_ns;
	uint64_t safepoint_sync_ns; /* part of it: until all threads had stopped */
	uint64_t threads;
	uint64_t threads_daemon;
	uint64_t threads_peak;
	uint64_t threads_started;
	uint64_t classes_loaded;
	uint64_t classes_unloaded;
	uint64_t metaspace_used_bytes;
	uint64_t metaspace_size_bytes;
	uint64_t gc_cpu_ns;
};

/* From the counters as last read. */
int java_metrics_read(const struct java_hsperf *hsperf, struct java_metrics *ret_metrics,
		      struct err *err);

/*
 * Calls each for all known values; now_unix_ms is for the uptime. Attributes have no control
 * characters, and live as long as the metrics. A nonzero result of each ends it and is returned.
 */
int java_metrics_each(const struct java_metrics *metrics, uint64_t now_unix_ms,
		      int (*each)(void *arg, const struct metric_point *point), void *arg);
