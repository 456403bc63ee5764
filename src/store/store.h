/*
 * src/store/store.h: stores profiles, metrics and events and finds them again.
 *
 * A stream is one service and one type ("go_heap:inuse_space:bytes"). A collection of one process
 * goes in as a struct store_entry; queries return sums over a window. Deltas (alloc_space) add up.
 * Snapshots (inuse_space) are summed too, and the number of collections in the window is returned
 * for averaging.
 *
 * One writer. Readers may be other threads; each call is thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/label.h"
#include "pipeline/registry/registry.h"
#include "profile/profile.h"

struct event;	/* pipeline/event.h */
struct metrics; /* pipeline/metrics.h */
struct store;	/* opaque */

struct store_entry {
	const char *service;
	uint32_t uid;		    /* its owner; see store/sqlite/owners.h */
	const char *family;	    /* "go_heap"; the stream's type is family:type:unit */
	const struct label *labels; /* identify the process */
	size_t n_labels;
	int64_t time_ns;     /* end of the interval, since 1970 */
	int64_t duration_ns; /* of the interval */
	const struct profile *profile;
	uint32_t snapshot_types; /* bit i: type i of the profile is a snapshot, not a delta */
	uint32_t absent_types;	 /* bit i: nothing is written of type i */
};

/* Adds one entry to the next commit. -ENOSPC if the disk is full: see status. */
int store_write(struct store *store, const struct store_entry *entry, struct err *err);

/* Numbers of one resource at one time. */
struct store_metrics {
	const char *service;
	uint32_t uid;
	const struct label *labels;
	size_t n_labels;
	int64_t time_ns;
	int64_t duration_ns;
	const struct metrics *metrics;
};
/*
 * The same for metrics. Counters are stored as increases: a first reading has none and is a gap.
 * Points of series over the limits are refused; status counts them, and that is no failure.
 */
int store_write_metrics(struct store *store, const struct store_metrics *metrics, struct err *err);

struct store_event {
	const char *service;
	uint32_t uid;
	const struct label *labels;
	size_t n_labels;
	int64_t time_ns;
	int64_t duration_ns;
	const struct event *event;
};
/* The same for an event, with its profile, under the family of its kind. */
int store_write_event(struct store *store, const struct store_event *event, struct err *err);

/* Makes everything since the last commit durable, in one transaction. Call once per interval. */
int store_commit(struct store *store, struct err *err);
/* Packs past hours, rolls up past days, and enforces retention and size. Call regularly. */
int store_maintain(struct store *store, int64_t now_ns, struct err *err);
void store_close(struct store *store); /* NULL is fine */
DEFINE_CLEANUP(struct store, store_close)

/* What to read: a stream, a window [from, to), and labels to match. */
struct store_window {
	const char *service;
	const char *type;
	int64_t from_ns;
	int64_t to_ns;
	const struct label *filters;
	size_t n_filters;
	/*
	 * A snapshot stands until the next one of its process is due: one that is read less often
	 * than others counts at all times of collection. False: only what was read.
	 */
	bool stands;
	/* Adds up how many pieces the answer lacks because they are damaged; NULL: unwanted. */
	uint64_t *damaged;
};

/* Sums over the window: a profile of one type with names, files and lines; addresses are 0. */
struct store_sum {
	struct profile *profile; /* the caller frees it */
	bool snapshot;
	uint64_t collections; /* distinct collection times of the stream in the window */
	uint64_t samples;     /* stored samples that were added up */
	int64_t other;	      /* value folded into "(other)" when stored */
};
int store_sum(struct store *store, const struct store_window *window, struct store_sum *ret_sum,
	      struct err *err);

/* Totals over time: points[i] covers [from + i*step, from + (i+1)*step). Deltas are summed, */
/* snapshots averaged over the collections of the step and summed over processes; NAN for a gap. */
int store_series(struct store *store, const struct store_window *window, int64_t step_ns,
		 double *points, size_t n_points, struct err *err);

/* The same for many streams of a window, which names none: step and points of each are its own. */
struct store_series_request {
	const char *service;
	const char *type;
	int64_t step_ns;
	double *points;
	size_t n_points;
};
int store_series_many(struct store *store, const struct store_window *window,
		      const struct store_series_request *requests, size_t n, struct err *err);

/*
 * Totals of the window by the values of a label, as stored and added up. Label sets that lack it
 * are in none. The caller frees the array.
 */
struct store_label_total {
	const char *value; /* in one allocation with the array */
	double total;
};
int store_label_totals(struct store *store, const struct store_window *window, const char *key,
		       struct store_label_total **ret_totals, size_t *ret_len, struct err *err);

/* A function over time, in steps as above. */
struct store_function {
	const char *name; /* without what a compiler appended to it (profile/suffix.h) */
	const char *file; /* NULL: any */
};
struct store_curve {
	int64_t step_ns;
	size_t n;
	double *self;  /* n points each: where it is the leaf, */
	double *total; /* or anywhere in the stack; 0 where others were read and it was not there */
	uint8_t *unread; /* n flags: a gap because something in the step is damaged */
};
int store_curve(struct store *store, const struct store_window *window,
		const struct store_function *function, const struct store_curve *curve,
		struct err *err);

struct store_stream {
	char service[256];
	char type[128]; /* family:type:unit */
	bool snapshot;
	int64_t first_ns;
	int64_t last_ns;
};
/* All streams with data in the window, sorted by service, then type. The caller frees the array. */
int store_streams(struct store *store, int64_t from_ns, int64_t to_ns,
		  struct store_stream **ret_streams, size_t *ret_len, struct err *err);

/*
 * All label sets of a service in the window, or of all services (NULL), as flat {key, value} pairs
 * with set boundaries.
 */
struct store_labelset {
	const char *service; /* in one allocation with the array, as are ... */
	struct label *labels;
	size_t n_labels;
	int64_t first_ns;
	int64_t last_ns;
};
int store_labelsets(struct store *store, const char *service, int64_t from_ns, int64_t to_ns,
		    struct store_labelset **ret_sets, size_t *ret_len, struct err *err);

/* Which metrics to read, and how. */
enum store_aggregate {
	STORE_AVERAGE, /* of gauges; increases of counters and histograms are summed */
	STORE_MIN,
	STORE_MAX,
	STORE_LAST,
};
struct store_metric_query {
	const char *service;
	const char *metric; /* NULL: all, without points */
	int64_t from_ns;
	int64_t to_ns;
	const struct label *filters; /* attributes of the metric, or labels */
	size_t n_filters;
	int64_t step_ns; /* points[i] covers [from + i*step, from + (i+1)*step) */
	size_t n_points;
	enum store_aggregate aggregate;
	uint64_t *damaged; /* as of a window */
};

struct store_series {
	const char *metric;
	const char *unit;
	enum metric_kind kind;
	const struct label *attributes; /* those that are set */
	size_t n_attributes;
	const struct label *labels;
	size_t n_labels;
	int64_t first_ns;
	int64_t last_ns;
	/* width rows of n_points; NAN for a gap. A histogram has one row per bucket. */
	double *points;
	double *sums;		  /* of the values in the buckets, n_points; NULL if unknown */
	const uint32_t *readings; /* of a gauge, n_points: how many the point stands for */
	uint32_t width;
};
struct store_metric_answer {
	struct store_series *series; /* by metric, attributes, labels */
	size_t len;
	bool known; /* the metric (any, if none was named) was ever stored */
	/* Of the named metric; from outside the window if that has none. */
	enum metric_kind kind;
	const char *unit;
	const double *bounds; /* of a histogram */
	size_t n_bounds;
	struct arena memory; /* of everything */
};
/* -E2BIG: more points than fit into memory. A metric never stored is not an error: see known. */
int store_metrics(struct store *store, const struct store_metric_query *query,
		  struct store_metric_answer *ret_answer, struct err *err);
void store_metric_answer_release(struct store_metric_answer *answer);

struct store_stored_event {
	int64_t time_ns; /* in whole milliseconds */
	const char *service;
	const char *kind; /* "oom_kill" */
	const char *sentence;
	const char *family; /* of the profile stored with it; "": none */
	const struct label *attributes;
	size_t n_attributes;
	const struct label *labels;
	size_t n_labels;
};
struct store_events_answer {
	struct store_stored_event *events; /* by time */
	size_t len;
	uint64_t damaged; /* pieces that could not be read */
	struct arena memory;
};
/* The events of a window, of one service or all (NULL). */
int store_events(struct store *store, const char *service, int64_t from_ns, int64_t to_ns,
		 struct store_events_answer *ret_answer, struct err *err);
void store_events_answer_release(struct store_events_answer *answer);

/* Totals of all services over time, of up to this many types. */
#define STORE_OVERVIEW_TYPES 4
#define STORE_OVERVIEW_MAX_TYPES 256U /* that services have */

struct store_overview_query {
	int64_t from_ns; /* whole minutes, all three */
	int64_t to_ns;
	int64_t step_ns;
	const char *types[STORE_OVERVIEW_TYPES]; /* NULL after the last */
};
/* One step of one type: deltas are sums; snapshots are sum / times, summed over processes. */
struct store_overview_cell {
	int64_t sum;
	uint32_t times;	 /* distinct collection times; 0: a gap */
	uint32_t points; /* one per process and time */
};
struct store_overview_service {
	const char *name;
	const char *runtime; /* "": not known */
	const char *parent;
	bool lived;	    /* a process was seen for a minute or longer, or nobody knows */
	uint32_t processes; /* in its last minute with data, or its last ten */
	uint64_t types[STORE_OVERVIEW_MAX_TYPES / 64]; /* bits: those it has in the window */
	int64_t first_ns;
	int64_t last_ns;
	/* By type of the query: the steps, from->to; NULL if it has none. */
	struct store_overview_cell *cells[STORE_OVERVIEW_TYPES];
	int64_t last_of_ns[STORE_OVERVIEW_TYPES];
};
struct store_overview {
	struct store_overview_service *services; /* in no order */
	size_t len;
	const char **types; /* names, by bit */
	size_t n_types;
	size_t n_steps;
	uint64_t damaged; /* pieces that are lacking */
	struct arena memory;
};
/* Services without data in the window are not among them. -E2BIG: does not fit into memory. */
int store_overview(struct store *store, const struct store_overview_query *query,
		   struct store_overview *ret_overview, struct err *err);
void store_overview_release(struct store_overview *overview);

struct store_status {
	uint64_t bytes_on_disk;
	uint64_t days;
	int64_t oldest_ns;
	uint64_t samples_written;
	uint64_t profiles_written;
	uint64_t profiles_lost; /* could not be written */
	uint64_t damaged_files; /* set aside */
	int64_t clock_ahead_ns; /* the wall clock jumped, and nothing is old by it yet; 0: no */
	uint64_t series;	/* of metrics, written in the current hour */
	uint64_t points_written;
	uint64_t points_lost;	 /* could not be written */
	uint64_t series_refused; /* points refused because there were too many series */
	uint64_t events_written;
	uint64_t events_lost;
	uint64_t over_budget;	  /* stacks, label sets, series and services that are "(other)" */
	char budget[256];	  /* whose, and why; "" if there are none */
	uint64_t damaged_blocks;  /* distinct places: what is missing from answers */
	uint64_t corrected_pages; /* damaged, but nothing is missing */
	char damage[256];	  /* the last of them, and what to do; "" if there is none */
	bool writing;		  /* false: the disk is full, or the directory is not writable */
	char trouble[256];	  /* the reason and the fix; "" if all is well */
};
void store_status(struct store *store, struct store_status *ret_status);
