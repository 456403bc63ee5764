/*
 * src/query/tree.h: one call tree of one or two windows, in whole numbers, before folding and
 * averaging.
 */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "query/origin.h"
#include "query/sums.h"

#define QUERY_TREE_MAX_NODES ((uint32_t)4 << 20)

/* A parent's index is always lower than its children's. */
struct query_tree_node {
	uint32_t name; /* id in names */
	uint32_t parent;
	uint32_t first_child; /* 0 for none */
	uint32_t sibling;
	int64_t self[2]; /* by window */
	int64_t total[2];
};

struct query_tree {
	struct query_tree_node *nodes; /* nodes[0] is the root */
	uint32_t len;
	uint32_t cap;
	struct intern names; /* id 0 is "" */
	struct query_origins origins;
	struct map children; /* parent << 32 | name to node, for nodes that have siblings */
};

/* With the root alone. */
int query_tree_init(struct query_tree *tree, struct err *err);
/* Adds both windows below a frame of this name, or below the root: NULL. */
int query_tree_add(struct query_tree *tree, const struct query_sums *sums, const char *below,
		   struct err *err);
void query_tree_release(struct query_tree *tree);
