/*
 * src/query/query.h: queries of stored profiles: one window, two windows, a series.
 *
 * In-use types are averaged over the collections of the window and summed over processes; deltas
 * are summed. Nodes folded to keep a response small become one node, "(other)", with their value.
 *
 * Averages are rounded to 1/64 such that sums stay exact: a node's self value and its children's
 * totals add up to its total, to the last bit.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"
#include "profile/tree.h"
#include "query/origin.h"
#include "store/store.h"

#define QUERY_MIN_NODES 8
#define QUERY_MAX_GROUPS 50 /* each is a sum of its own */

/* A profile of one type: sums, or averages for snapshots. The caller frees it. */
int query_profile(struct store *store, const struct store_window *window,
		  struct profile **ret_profile, struct store_sum *ret_about, struct err *err);

/* What responses say about their windows. */
struct query_about {
	char unit[64];
	bool snapshot;
	uint64_t collections;
	uint64_t before_collections;
	double other; /* folded when stored; first window only */
};

/* Where functions come from; see origin.h. */
struct query_origin {
	enum query_kind kind;
	const char *module; /* "" if unknown */
};

/* A flame graph in depth-first order; node 0 is the root. */
struct query_node {
	uint32_t name; /* index into names */
	uint32_t depth;
	uint32_t end; /* index after the last node of its subtree */
	double self;
	double total;
	double before_self; /* in the other window; 0 without one */
	double before_total;
};
struct query_flame {
	struct query_node
		*nodes; /* children by descending total, then name; "(other)" comes last */
	size_t n_nodes;
	char **names; /* function names, their files, */
	char **files;
	char **variants;  /* and their suffixes, as in struct query_row */
	uint32_t *origin; /* by name: index into origins */
	size_t n_names;
	struct query_origin *origins; /* distinct ones */
	size_t n_origins;
	double total;
	double before_total;
	double folded; /* value in "(other)" nodes */
	struct query_about about;
};
struct query_flame_request {
	const struct store_window *window;
	const struct store_window *before; /* NULL: one window */
	/*
	 * A label: its values become the first frames, "process.pid=42", the largest of both
	 * windows; "process.pid=(other)" has all others. NULL: none.
	 */
	const char *group;
	size_t max_nodes; /* limits the response; at least QUERY_MIN_NODES */
};
int query_flame(struct store *store, const struct query_flame_request *request,
		struct query_flame *ret_flame, struct err *err);
void query_flame_release(struct query_flame *flame);

/* By function: self and total in both windows. Sorted by |change|, or by self. */
struct query_row {
	const char *name; /* borrowed from the response */
	const char *file;
	/* What compilers appended to the name, QUERY_VARIANTS_MAX of it; after the last comes "".
	 */
	const char *variants;
	double self;
	double total; /* a recursive function counts once per stack */
	double before_self;
	double before_total;
};
struct query_top {
	struct query_row *rows;
	size_t len;
	double total;
	double before_total;
	struct query_about about;
	void *memory; /* what names point into */
};
int query_top(struct store *store, const struct store_window *window,
	      const struct store_window *before, struct query_top *ret_top, struct err *err);
void query_top_release(struct query_top *top);

/*
 * One function: its lines, and who calls it and whom it calls. A stack counts once for the
 * function, for each of its lines, and for the caller and callee of its outermost frame: those of a
 * recursive function's inner frames are part of it. So its callers, and the stacks that begin with
 * it, add up to its total.
 */
struct query_line {
	const char *file;
	int64_t line; /* 0: unknown */
	double self;
	double total;
	double before_self;
	double before_total;
};
struct query_neighbour {
	const char *name;
	double total; /* of the function, in stacks with this neighbour */
	double before_total;
};
struct query_function {
	const char *file; /* "" if unknown; the first if there are several */
	double self;
	double total;
	double before_self;
	double before_total;
	/* All sorted by falling total of the larger window. */
	struct query_line *lines;
	struct query_neighbour *callers;
	struct query_neighbour *callees;
	size_t n_lines;
	size_t n_callers;
	size_t n_callees;
	double window_total;
	double window_before_total;
	struct query_about about;
	void *memory; /* what names point into */
};
int query_function(struct store *store, const struct store_window *window,
		   const struct store_window *before, const struct store_function *function,
		   struct query_function *ret_function, struct err *err);
void query_function_release(struct query_function *function);

/*
 * Parses "2026-11-15T12:03:00Z" (or with an offset, or local time without one), "12:03" (local
 * time, today, or yesterday if that is still to come), "-1h", "now", seconds or milliseconds since
 * 1970.
 */
int query_parse_time(const char *text, int64_t now_ns, int64_t *ret_ns, struct err *err);
