/*
 * src/pipeline/registry/registry.h: the one table of everything measured: profile types, metrics,
 * events.
 *
 * Sources, the command line, /metrics, /api/types, the page and the docs take names, units, titles
 * and help from here. A profile type that is not registered (an ingested one) is shown all the
 * same, under its own name.
 *
 * To add a row: an id here, the row in types.c or metrics.c, then run
 * `tools/registry_docs.py`, which generates the tables of docs/API.md.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* How values of one type relate over time. */
enum registry_mode {
	MODE_DELTA,    /* what happened in an interval; adds up */
	MODE_SNAPSHOT, /* a state; averaged over time, summed over processes */
};
const char *registry_mode_name(enum registry_mode mode); /* "delta", "snapshot" */

/* In the order of the table, which is the order on the page. */
enum type_id {
	TYPE_JAVA_CPU_TIME,
	TYPE_JAVA_CPU_SAMPLES,
	TYPE_CPU_TIME,
	TYPE_CPU_SAMPLES,
	TYPE_OFFCPU_TIME,
	TYPE_OFFCPU_WAITS,
	TYPE_GO_HEAP_INUSE_SPACE,
	TYPE_GO_HEAP_INUSE_OBJECTS,
	TYPE_GO_HEAP_ALLOC_SPACE,
	TYPE_GO_HEAP_ALLOC_OBJECTS,
	TYPE_JAVA_ALLOC_SPACE,
	TYPE_JAVA_ALLOC_OBJECTS,
	TYPE_GOROUTINE_ALL,
	TYPE_GOROUTINE_WAITING,
	TYPE_GOROUTINE_RUNNABLE,
	TYPE_GOROUTINE_RUNNING,
	TYPE_GOROUTINE_SYSCALL,
	TYPE_GO_BLOCK_DELAY,
	TYPE_GO_BLOCK_CONTENTIONS,
	TYPE_JAVA_LOCK_DELAY,
	TYPE_JAVA_LOCK_CONTENTIONS,
	TYPE_GO_MUTEX_DELAY,
	TYPE_GO_MUTEX_CONTENTIONS,
	TYPE_GO_OOM_INUSE_SPACE,
	TYPE_GO_OOM_INUSE_OBJECTS,
	TYPE_GO_OOM_GOROUTINE,
	TYPES,
};

struct registry_type {
	const char *family; /* "go_heap" */
	const char *name;   /* "inuse_space" */
	const char *unit;   /* "bytes" */
	enum registry_mode mode;
	const char *group;   /* heading on the page: "Memory" */
	const char *measure; /* types of one family and measure share a card: "live" */
	const char *variant; /* its name among them: "Bytes" */
	const char *title;   /* its name on its own: "Live heap" */
	const char *help;    /* one sentence */
};
extern const struct registry_type registry_types[TYPES];
/* NULL if not registered. */
const struct registry_type *registry_type_find(const char *family, const char *name,
					       const char *unit);
/* Adds the type to a profile, as profile_add_type() does. */
int registry_type_add(struct profile *p, enum type_id id);
/* Bit i: type i of a profile of this family is a snapshot. Unregistered types are deltas. */
uint32_t registry_snapshot_types(const char *family, const struct profile *p);

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };
const char *metric_kind_name(enum metric_kind kind); /* "gauge", as in Prometheus */

#define METRIC_MAX_ATTRIBUTES 3
#define METRIC_MAX_BOUNDS 63

struct metric {
	const char *name; /* "go.heap.live"; OpenTelemetry's name if it has one */
	enum metric_kind kind;
	const char *unit; /* "bytes", "nanoseconds", "count", "ppm"; "bool": 0 or 1 */
	const char *title;
	const char *help;			       /* one sentence */
	const char *family;			       /* of its source; "sonde": sonde itself */
	const char *attributes[METRIC_MAX_ATTRIBUTES]; /* keys; NULL after the last */
	const char *labels[METRIC_MAX_ATTRIBUTES];     /* their Prometheus names */
	const char *prometheus;	   /* "container_go_heap_live_bytes"; NULL: not on /metrics */
	double prometheus_divisor; /* divides the value there; 0: none */
	/*
	 * The type of its stream, if it is stored as one: "go_runtime:heap_live:bytes"; otherwise
	 * NULL.
	 */
	const char *stream;
	const double *bounds; /* of a histogram's buckets, ascending */
	size_t n_bounds;
};

/* In the order of the table, which is the order on /metrics. */
enum metric_id {
	METRIC_PROCESS_CPU_TIME,
	METRIC_PROCESS_MEMORY,
	METRIC_GO_PROFILE_ALLOCATED,
	METRIC_GO_PROFILE_ALLOCATIONS,
	METRIC_GO_HEAP_LIVE,
	METRIC_GO_GC_GOAL,
	METRIC_GO_HEAP_INUSE,
	METRIC_GO_MEMORY_USED,
	METRIC_GO_MEMORY_RESIDENT,
	METRIC_GO_MEMORY_LIMIT,
	METRIC_GO_GOROUTINES,
	METRIC_GO_GOROUTINE_STATES,
	METRIC_GO_PROCESSORS,
	METRIC_GO_GC_CYCLES,
	METRIC_GO_GC_PAUSE,
	METRIC_GO_GC_CPU_FRACTION,
	METRIC_GO_ALLOCATED,
	METRIC_GO_BLOCK_CONTENTIONS,
	METRIC_GO_BLOCK_DELAY,
	METRIC_GO_MUTEX_CONTENTIONS,
	METRIC_GO_MUTEX_DELAY,
	METRIC_JVM_INFO,
	METRIC_JVM_UPTIME,
	METRIC_JVM_MEMORY_USED,
	METRIC_JVM_MEMORY_COMMITTED,
	METRIC_JVM_METASPACE_USED,
	METRIC_JVM_METASPACE_COMMITTED,
	METRIC_JVM_GC_COLLECTIONS,
	METRIC_JVM_GC_TIME,
	METRIC_JVM_GC_CPU_TIME,
	METRIC_JVM_SAFEPOINTS,
	METRIC_JVM_SAFEPOINT_TIME,
	METRIC_JVM_SAFEPOINT_SYNC_TIME,
	METRIC_JVM_THREADS,
	METRIC_JVM_THREADS_DAEMON,
	METRIC_JVM_THREADS_STARTED,
	METRIC_JVM_CLASSES_LOADED,
	METRIC_JVM_CLASSES_UNLOADED,
	METRIC_JVM_PROFILING,
	METRIC_JVM_ALLOCATED,
	METRIC_JVM_LOCK_CONTENTIONS,
	METRIC_JVM_LOCK_TIME,
	METRIC_JVM_LOST_SAMPLES,
	METRIC_SYSTEM_CPU_TIME,
	METRIC_SYSTEM_CPU_BUSY,
	METRIC_SYSTEM_CPUS,
	METRIC_SYSTEM_MEMORY,
	METRIC_SYSTEM_MEMORY_USED,
	METRIC_SYSTEM_MEMORY_LIMIT,
	METRIC_SONDE_INFO,
	METRIC_SONDE_FEATURE_ON,
	METRIC_SONDE_TARGETS,
	METRIC_SONDE_TARGETS_PROFILED,
	METRIC_SONDE_INTERVALS,
	METRIC_SONDE_LAG,
	METRIC_SONDE_COVERED,
	METRIC_SONDE_SPREAD,
	METRIC_SONDE_COLLECTIONS,
	METRIC_SONDE_COLLECTION_FAILURES,
	METRIC_SONDE_LOST_RECORDS,
	METRIC_SONDE_WRITE_FAILURES,
	METRIC_SONDE_RECORDS_DROPPED,
	METRIC_SONDE_CPU_SAMPLES,
	METRIC_SONDE_CPU_SAMPLES_LOST,
	METRIC_SONDE_CPU_STACKS_CUT,
	METRIC_SONDE_CPU_TIME,
	METRIC_SONDE_MEMORY,
	METRIC_SONDE_STORE_SIZE,
	METRIC_SONDE_STORE_WRITING,
	METRIC_SONDE_STORE_DAMAGED,
	METRIC_SONDE_STORE_SAMPLES,
	METRIC_SONDE_STORE_PROFILES,
	METRIC_SONDE_STORE_PROFILES_LOST,
	METRIC_SONDE_STORE_SERIES,
	METRIC_SONDE_STORE_SERIES_REFUSED,
	METRIC_SONDE_STORE_POINTS,
	METRIC_SONDE_STORE_POINTS_LOST,
	METRIC_SONDE_STORE_EVENTS,
	METRIC_SONDE_STORE_EVENTS_LOST,
	METRIC_SONDE_STORE_DAMAGED_BLOCKS,
	METRIC_SONDE_STORE_CORRECTED_PAGES,
	METRIC_SONDE_STORE_OVER_BUDGET,
	METRICS,
};
extern const struct metric registry_metrics[METRICS];
enum event_id {
	EVENT_OOM_KILL,
	EVENT_OOM_NEAR,
	EVENTS,
};

struct event_kind {
	const char *name; /* "oom_kill" */
	const char *title;
	const char *help;   /* one sentence */
	const char *family; /* of its profile, if any: "go_oom" */
};
extern const struct event_kind registry_events[EVENTS];
