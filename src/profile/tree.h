/*
 * src/profile/tree.h: the views of a profile: function table, call tree, and collapsed stacks, each
 * for one sample type.
 *
 * All of them name frames as in frames.h, with the profile's full names. What `go tool pprof -top`
 * prints as "main.fill[...]" is so in the file: runtimes up to Go 1.20 omit type arguments. Newer
 * ones write "main.fill[go.shape.int]", and the tool prints that; it shortens names only in
 * drawings.
 *
 * The functions add names of nameless frames to the profile's strings, so the profile is not const.
 * drop_frames and keep_frames are not applied; Go profiles have none.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

struct profile_row {
	uint32_t name; /* string id of the profile; unique */
	int64_t flat;  /* belongs to the innermost inlined function of the leaf */
	int64_t cum;   /* a recursive function counts once per sample */
};

struct profile_table {
	struct profile_row
		*rows; /* ordered as in `go tool pprof -top`: descending |flat|, then name */
	size_t len;
	int64_t total; /* the base of percentages */
};

/*
 * The rows of `go tool pprof -top -nodefraction=0`, without functions whose values are 0. total is
 * the sum of |value| of all samples; if samples have the label pprof::base=true, which the tool
 * sets for -diff_base, it is the sum of only these. For a profile made by profile_diff(),
 * profile_total() of the earlier one gives the percentages of -diff_base, and the table's own total
 * those of -base. Sums saturate.
 *
 * By default the tool drops rows with |cum| < 0.005 * |sum of all flat values|, and has no limit on
 * the rows of -top.
 */
int profile_table_build(struct profile *p, size_t type, struct profile_table *ret_table,
			struct err *err);
void profile_table_release(struct profile_table *table);
int64_t profile_total(const struct profile *p, size_t type);

/*
 * A call tree. nodes[0] is the root; children are linked by first_child and sibling, by descending
 * |total|, then name. Samples of value 0 are ignored.
 */
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

/*
 * "root;caller;leaf value\n" for each distinct stack of names, sorted by names from the root. ';'
 * and control characters in names become ':' and ' '. Stacks with value 0 or without frames are
 * omitted.
 */
int profile_collapse(struct profile *p, size_t type, struct buf *out, struct err *err);
