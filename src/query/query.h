/*
 * src/query/query.h: questions about stored profiles: one window, two windows, a series.
 *
 * In-use types are averaged over the collection times of the window and summed over processes;
 * deltas are summed. What is folded away to keep an answer small is one node, "(other)", with its
 * share.
 *
 * Averages are rounded to 1/64 in such a way that sums stay exact: what a node has itself and what
 * its children have is what it has in all, to the last bit.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"
#include "profile/tree.h"
#include "store/store.h"

#define QUERY_MIN_NODES 8

/* A profile of one type: sums, or averages for snapshots. The caller's to free. */
int query_profile(struct store *store, const struct store_window *window,
		  struct profile **ret_profile, struct store_sum *ret_about, struct err *err);

/* What the answers say about their windows. */
struct query_about {
	char unit[64];
	bool snapshot;
	uint64_t collections;
	uint64_t before_collections;
	double other; /* folded away when it was stored; of the first window */
};

/* A flame graph in depth-first order; node 0 is the root. */
struct query_node {
	uint32_t name; /* index into names */
	uint32_t depth;
	uint32_t end; /* index after the last node of its subtree */
	double self;
	double total;
	double before_self; /* of the other window; 0 without one */
	double before_total;
};
struct query_flame {
	struct query_node *nodes; /* children: total falling, then name; "(other)" is the last */
	size_t n_nodes;
	char **names; /* function names; files beside them */
	char **files;
	size_t n_names;
	double total;
	double before_total;
	double folded; /* value in "(other)" nodes */
	struct query_about about;
};
/* before may be NULL. max_nodes, at least QUERY_MIN_NODES, bounds the answer. */
int query_flame(struct store *store, const struct store_window *window,
		const struct store_window *before, size_t max_nodes, struct query_flame *ret_flame,
		struct err *err);
void query_flame_release(struct query_flame *flame);

/* By function: self and total in the window, and in the other one. Sorted by |change| or by self.
 */
struct query_row {
	const char *name; /* borrowed from the answer */
	const char *file;
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
 * "2026-11-15T12:03:00Z" (or with an offset, or without one: local time), "12:03" (today, or
 * yesterday where that is to come, local time), "-1h", "now", seconds or milliseconds since 1970.
 */
int query_parse_time(const char *text, int64_t now_ns, int64_t *ret_ns, struct err *err);
