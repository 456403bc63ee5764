/*
 * src/pipeline/registry.h: the one table of what can be measured: profile types, metrics, events.
 *
 * Readers, the command line, /metrics, /api/types, the page and the docs take names, units, titles
 * and help from here. A profile type that is not in it (one that was ingested) is shown all the
 * same, under its own name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How values of one type relate over time. */
enum registry_mode {
	MODE_DELTA,    /* what happened in an interval: adds up */
	MODE_SNAPSHOT, /* what there was: averaged over time, summed over processes */
};

struct registry_type {
	const char *family; /* "go_heap" */
	const char *name;   /* "inuse_space" */
	const char *unit;   /* "bytes" */
	enum registry_mode mode;
	const char *group; /* the heading it is shown under: "Memory" */
	const char
		*measure; /* types of one measure say one thing in several ways, and share a card */
	const char *variant; /* what it is called among them: "Bytes" */
	const char *title;   /* by itself: "Live heap" */
	const char *help;    /* one line */
};
/* All of them, in the order in which they are shown. */
extern const struct registry_type registry_types[];
extern const size_t registry_n_types;
/* By the three parts; NULL for what is not registered. */
const struct registry_type *registry_type_find(const char *family, const char *name,
					       const char *unit);

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

#define METRIC_MAX_ATTRIBUTES 3

struct metric {
	const char *name; /* "go.heap.live" */
	enum metric_kind kind;
	const char *unit; /* "bytes", "nanoseconds", "count", "ppm", ... */
	const char *title;
	const char *help; /* one line */
	const char *family;
	const char *attributes[METRIC_MAX_ATTRIBUTES]; /* keys; NULL after the last */
	const char *prometheus;			       /* "container_go_heap_live_bytes" */
	double prometheus_divisor; /* what the value is divided by there; 0: as 1 */
	/* The stream type that docs/API.md knows it by, "go_runtime:heap_live:bytes"; else NULL. */
	const char *stream;
	const double *bounds; /* of a histogram's buckets, ascending */
	size_t n_bounds;
};

/* In the order of the table. */
enum metric_id {
	METRIC_GO_HEAP_LIVE,
	METRICS,
};
extern const struct metric registry_metrics[METRICS];
const struct metric *registry_metric_find(const char *name);

enum event_id {
	EVENT_OOM_KILL,
	EVENT_OOM_NEAR,
	EVENTS,
};

struct event_kind {
	const char *name; /* "oom_kill" */
	const char *title;
	const char *help;
	const char *family; /* of the profile that may come with it: "go_oom" */
};
extern const struct event_kind registry_events[EVENTS];
const struct event_kind *registry_event_find(const char *name);
