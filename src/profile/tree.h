/*
 * src/profile/tree.h: what views need of a profile: a table by function, a call tree, and
 * collapsed stacks, each for one sample type.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

struct profile_row {
	uint32_t name; /* string id of the profile; unsymbolised frames are named by address */
	int64_t flat;
	int64_t cum; /* a recursive function counts once per sample */
};

struct profile_table {
	struct profile_row *rows; /* as `go tool pprof -top` orders: |flat| falling, then |cum|
				     falling, then name */
	size_t len;
	int64_t total; /* what percentages refer to: sum of |value| for a plain profile, see below
			*/
};

/*
 * total: the sum of the values as `go tool pprof` computes it (absolute values of the samples; for
 * a difference the caller gives the base's total instead).
 */
int profile_table_build(struct profile *p, size_t type, struct profile_table *ret_table,
			struct err *err);
void profile_table_release(struct profile_table *table);

/* A call tree from the root: nodes[0] is the root; children are linked by first_child and sibling,
 * largest first. */
struct profile_node {
	uint32_t name;	      /* string id; 0 for the root */
	uint32_t first_child; /* node index, 0 for none */
	uint32_t sibling;
	int64_t self;
	int64_t total;
};
struct profile_tree {
	struct profile_node *nodes;
	size_t len;
};
int profile_tree_build(struct profile *p, size_t type, struct profile_tree *ret_tree,
		       struct err *err);
void profile_tree_release(struct profile_tree *tree);

/* "root;caller;leaf value\n" for each distinct stack of names, sorted; ';' and newlines in names
 * become ':' and ' '. */
int profile_collapse(struct profile *p, size_t type, struct buf *out, struct err *err);
