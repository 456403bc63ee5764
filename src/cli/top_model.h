/*
 * src/cli/top_model.h: what `sonde top` knows: the last readings of all processes, and tables of
 * functions, services or processes made of them. No I/O, no clock, no lock.
 *
 * Names and stacks are shared between processes, so that many processes of one program cost little
 * more than one. Go counts an allocation when the garbage collector has finished the cycle after
 * it: between two cycles a process seems to do nothing, and then everything at once. So a rate is
 * what came with the last reading that brought anything, over the time since the one before that,
 * and it stays until the next one; it ends when that is long overdue. Of the first that a process
 * brings nobody knows how long it took to gather: it counts only if it keeps coming.
 *
 * CPU samples come for all processes together, and only for those that ran: what the last
 * collection does not name is at rest. A process that ended in between has burnt its share as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "pipeline/registry.h"
#include "proc/id.h"
#include "profile/profile.h"

enum top_kind { TOP_ALLOC, TOP_LIVE, TOP_CPU, TOP_KINDS };
/* Of TOP_CPU: samples and nanoseconds. */
enum top_unit { TOP_OBJECTS, TOP_BYTES, TOP_UNITS };
enum top_group { TOP_FUNCTIONS, TOP_SERVICES, TOP_PROCESSES, TOP_GROUPS };

/* That of alloc_space for TOP_ALLOC and TOP_BYTES. */
const struct registry_type *top_type(enum top_kind kind, enum top_unit unit);

/* One process, as records tell of it. */
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
 * One reading at now_ns: alloc_* as deltas, inuse_* as they are. The first one of a process is its
 * baseline. Names of nameless frames are added to the profile. Past the memory limit everything is
 * forgotten (-E2BIG), and comes back with the next readings.
 */
int top_model_add(struct top_model *model, const struct top_subject *who, struct profile *profile,
		  uint64_t now_ns, struct err *err);
/*
 * What a process did on the CPUs in the collection of this time, with its length in the profile's
 * header. One of another time begins a new collection.
 */
int top_model_add_cpu(struct top_model *model, const struct top_subject *who,
		      struct profile *profile, int64_t stamp_ns, struct err *err);
/* A collection has begun, maybe without any process that is wanted; 0: there is none any more. */
void top_model_begin_cpu(struct top_model *model, int64_t stamp_ns);
/* The next reading of each process is a baseline again; what is shown stays until then. */
void top_model_rebase(struct top_model *model);
/* While frozen, readings count for the time they span, and change nothing that is shown. */
void top_model_freeze(struct top_model *model, bool frozen);

/*
 * Forgets all processes that are not among these, but for what they did on the CPUs; ids ascend by
 * pid.
 */
void top_model_retain(struct top_model *model, const struct proc_id *ids, size_t n);

struct top_sums {
	double values[TOP_KINDS][TOP_UNITS]; /* TOP_ALLOC and TOP_CPU by second */
	size_t running;			     /* processes with CPU samples */
	size_t processes;		     /* with heaps, as the rest of it */
	size_t services;
	size_t measured; /* of the processes: those that were read twice */
	size_t waiting;	 /* of these: those that have no rate before the next garbage collection */
};
void top_model_sums(const struct top_model *model, struct top_sums *ret_sums);

/* What one process allocated since the deltas were taken before. */
struct top_process_delta {
	struct proc_id id;
	char service[128];
	uint64_t span_ns; /* 0: not read since, or only its baseline */
	int64_t values[TOP_UNITS];
};
/* The array is the caller's to free. */
int top_model_take_deltas(struct top_model *model, struct top_process_delta **ret_deltas,
			  size_t *ret_len);

struct top_view {
	enum top_kind kind;
	enum top_unit unit;
	enum top_group group;
	bool by_total;	    /* sort by what functions and those that they call come to */
	const char *filter; /* part of a name, in any case; "" or NULL for all */
	/* Its callers instead, with what they had it allocate; NULL for none. */
	const char *callers_of;
	const char *service; /* of this service only; NULL for all */
	pid_t pid;	     /* of this process only; 0 for all */
};

struct top_row {
	const char *name;  /* in the table's arena; cleaned of control characters */
	const char *where; /* likewise: which service, how many processes */
	const char *service;
	int64_t flat; /* TOP_ALLOC and TOP_CPU: by second */
	int64_t cum;
	size_t processes;
	pid_t pid; /* of TOP_PROCESSES */
};

struct top_table {
	struct arena arena;
	struct top_row *rows; /* sorted; functions that come to nothing are left out */
	size_t len;
	size_t hidden; /* rows that the filter leaves out */
	int64_t total; /* what percentages refer to: all that view->service and ->pid let through */
	int64_t shown; /* of it, what the rows have as flat */
};
int top_model_table(const struct top_model *model, const struct top_view *view,
		    struct top_table *ret_table, struct err *err);
void top_table_release(struct top_table *table);
