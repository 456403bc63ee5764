/*
 * src/cli/render/render.h: renders one sample type of a profile as text or JSON.
 *
 * Names come from possibly hostile targets and files: control characters are removed on output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cpu/sampler/sampler.h"
#include "golang/heap/heap.h"
#include "golang/process.h"
#include "proc/info.h"
#include "profile/profile.h"
#include "profile/tree.h"

/* The origin of a profile; for JSON. NULL members are omitted. */
struct render_source {
	const struct proc_info *process;
	const struct golang_facts *facts;
	const struct golang_heap_stats *stats;
	const char *core;    /* the core file that was read instead of a process */
	const char *machine; /* all of its processes were sampled */
	const struct cpu_losses *losses;
	uint64_t lost_memory; /* samples beyond the memory limit, with losses */
};

/* pprof hides what is below these shares of the total. */
#define RENDER_NODE_FRACTION 0.005
#define RENDER_EDGE_FRACTION 0.001
/* Of a terminal: header, hints, notes on stderr, and the prompt. */
#define RENDER_OTHER_LINES 12
#define RENDER_MIN_ROWS 5
/* However narrow the terminal is. */
#define RENDER_MIN_NAME 16

struct render {
	struct profile *profile;
	size_t type;	    /* index of the sample type */
	char type_name[64]; /* cleaned */
	char unit[32];	    /* cleaned */
	uint64_t max_nodes; /* 0: no limit */
	bool all_nodes;	    /* include nodes below the fractions */
	size_t columns;	    /* longer names are shortened; 0: none is */
	size_t lines;	    /* a table shows the rows that fit so many; 0: all */
	bool colour;
	const struct render_source *source; /* NULL for a file */
};

void render_init(struct render *r, struct profile *p, size_t type);

/* All append to out; 0, -ENOMEM or -E2BIG. */
int render_top(const struct render *r, struct buf *out, struct err *err);
int render_tree(const struct render *r, struct buf *out, struct err *err);
int render_json(const struct render *r, struct buf *out, struct err *err);

/* Before, after, change. The profile of r is the difference of the other two. */
int render_change(const struct render *r, struct profile *before, struct profile *after,
		  struct buf *out, struct err *err);

/*
 * "Type: ...", "Time: ..." and so on, as in pprof's table headers. unit: the unit of printed
 * values.
 */
int render_header(const struct render *r, int64_t total, const char *unit, struct buf *out);
/* A name of the profile, cleaned, after so many columns of its line. */
int render_name(const struct render *r, uint32_t name, size_t after, struct buf *out);
/* How many of these rows of a table fit a screen of this height; 0: all do. */
size_t render_fit_rows(size_t lines, size_t rows);
/* The text, coloured if colours are on. */
int render_coloured(const struct render *r, const char *colour, const char *text, struct buf *out);
/* The hint how to see the omitted rows. */
const char *render_more_hint(const struct render *r, uint64_t shown);
/* The unit of a whole table with these smallest and largest values. */
const char *render_table_unit(int64_t smallest, int64_t largest, const char *unit);

/*
 * Finds functions inlined into their callers. marks has one byte per string id of the profile;
 * those with RENDER_KEPT are shown. Adds RENDER_INLINE and RENDER_CALLED.
 */
enum { RENDER_KEPT = 1, RENDER_INLINE = 2, RENDER_CALLED = 4 };
int render_mark_inlined(const struct render *r, uint64_t edge_cutoff, uint8_t *marks,
			struct err *err);
