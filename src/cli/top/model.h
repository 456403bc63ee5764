/*
 * src/cli/top/model.h: the model of `sonde top`: the latest data of all processes, and tables of
 * functions, services or processes. No I/O, no clock, no lock.
 *
 * Names and stacks are shared between processes, so many processes of one program cost little more
 * than one.
 *
 * How much a Go process allocates is counted by its runtime. Who allocated it is known from
 * samples, of which a collection may have few: those of the last seconds are kept, older ones fade.
 * They share out what was counted or, if that is unknown (before Go 1.19), stand for themselves.
 *
 * CPU samples arrive for all processes together, and only for those that ran: a process without
 * samples in the last collection is idle. One that exited in between still counts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "pipeline/registry/registry.h"
#include "proc/id.h"
#include "profile/profile.h"

enum top_kind { TOP_ALLOC, TOP_LIVE, TOP_CPU, TOP_KINDS };
/* For TOP_CPU: samples and nanoseconds. */
enum top_unit { TOP_OBJECTS, TOP_BYTES, TOP_UNITS };
enum top_group { TOP_FUNCTIONS, TOP_SERVICES, TOP_PROCESSES, TOP_GROUPS };

/* The type: alloc_space for TOP_ALLOC and TOP_BYTES. */
const struct registry_type *top_type(enum top_kind kind, enum top_unit unit);

/* One process, as records describe it. */
struct top_subject {
	struct proc_id id;
	const char *service;
	const char *name; /* of its executable */
};

struct top_model; /* opaque */

int top_model_new(struct top_model **ret_model, struct err *err);
void top_model_free(struct top_model *model); /* NULL is fine */
DEFINE_CLEANUP(struct top_model, top_model_free)

/*
 * Adds one collection at now_ns: alloc_* as deltas, inuse_* as they are. The first one of a process
 * is its baseline. Adds names of nameless frames to the profile. Past the memory limit everything
 * is dropped (-E2BIG), and returns with the next collections.
 */
int top_model_add(struct top_model *model, const struct top_subject *who, struct profile *profile,
		  uint64_t now_ns, struct err *err);
/*
 * Adds what the runtime has counted since the previous call for this process; NAN in the first. A
 * process whose heap is not known is ignored.
 */
void top_model_add_counted(struct top_model *model, const struct proc_id *id, double bytes,
			   uint64_t now_ns);
/*
 * Adds a process's CPU samples of the collection at this time, with its length in the profile's
 * header. A different time starts a new collection.
 */
int top_model_add_cpu(struct top_model *model, const struct top_subject *who,
		      struct profile *profile, int64_t stamp_ns, struct err *err);
/* Starts a collection, possibly without any wanted process; 0: there is none any more. */
void top_model_begin_cpu(struct top_model *model, int64_t stamp_ns);
/* Makes the next collection of each process a baseline again; what is shown stays until then. */
void top_model_rebase(struct top_model *model);
/* While frozen, collections extend the time span but change nothing that is shown. */
void top_model_freeze(struct top_model *model, bool frozen);

/* Drops all processes except these, but keeps their CPU samples; ids ascend by pid. */
void top_model_retain(struct top_model *model, const struct proc_id *ids, size_t n);

struct top_sums {
	double values[TOP_KINDS][TOP_UNITS]; /* TOP_ALLOC and TOP_CPU per second */
	size_t running;			     /* processes with CPU samples */
	size_t processes;		     /* with heaps, as everything below */
	size_t services;
	size_t measured; /* processes read at least twice */
};
void top_model_sums(const struct top_model *model, struct top_sums *ret_sums);

/* What one process allocated since the deltas were last taken. */
struct top_process_delta {
	struct proc_id id;
	char service[128];
	uint64_t span_ns; /* 0: not read since, or only its baseline */
	int64_t values[TOP_UNITS];
};
/* The caller frees the array. */
int top_model_take_deltas(struct top_model *model, struct top_process_delta **ret_deltas,
			  size_t *ret_len);

struct top_view {
	enum top_kind kind;
	enum top_unit unit;
	enum top_group group;
	bool by_total;	    /* sort by cum */
	const char *filter; /* part of a name, ignoring case; "" or NULL for all */
	/* Show its callers instead, with their part of its value; NULL for none. */
	const char *callers_of;
	const char *service; /* of this service only; NULL for all */
	pid_t pid;	     /* of this process only; 0 for all */
};

struct top_row {
	const char *name;  /* in the table's arena; sanitized */
	const char *where; /* likewise: which service, how many processes */
	const char *service;
	int64_t flat; /* TOP_ALLOC and TOP_CPU: per second */
	int64_t cum;
	size_t processes;
	pid_t pid; /* of TOP_PROCESSES */
};

struct top_table {
	struct arena arena;
	struct top_row *rows; /* sorted; without functions of value 0 */
	size_t len;
	size_t hidden; /* rows hidden by the filter */
	int64_t total; /* the base of percentages: everything in view->service and ->pid */
	int64_t shown; /* of it, the sum of flat over the rows */
};
int top_model_table(const struct top_model *model, const struct top_view *view,
		    struct top_table *ret_table, struct err *err);
void top_table_release(struct top_table *table);
