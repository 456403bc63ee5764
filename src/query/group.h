/* src/query/group.h: a call tree whose first frames are the values of a label. */
#pragma once

#include "query/tree.h"

/*
 * Adds both windows, value by value; what they leave of sums becomes the rest. Values add up to the
 * sums exactly.
 */
int query_group_add(struct store *store, const struct query_flame_request *request,
		    struct query_sums *sums, struct query_tree *tree, struct err *err);
