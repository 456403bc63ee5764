/*
 * src/profile/tree.h: what views need of a profile: a table by function, a call tree, and
 * collapsed stacks, each for one sample type.
 *
 * All of them name frames as frames.h says. Names are those of the profile, in full: what
 * `go tool pprof -top` prints as "main.fill[...]" stands so in the file, because the runtime up to
 * Go 1.20 leaves type arguments out of what it writes; newer ones write "main.fill[go.shape.int]",
 * and the tool prints that. It shortens names in drawings only.
 *
 * The functions add names of nameless frames to the profile's strings; that is why the profile is
 * not const. drop_frames and keep_frames are not applied; profiles of Go have none.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

struct profile_row {
	uint32_t name; /* string id of the profile; no two rows have the same */
	int64_t flat;  /* belongs to the innermost inlined function of the leaf */
	int64_t cum;   /* a recursive function counts once per sample */
};

struct profile_table {
	struct profile_row *rows; /* as `go tool pprof -top` orders: |flat| falling, then name */
	size_t len;
	int64_t total; /* what percentages refer to */
};

/*
 * The rows of `go tool pprof -top -nodefraction=0`: functions whose values come to 0 have none.
 * total is the sum of |value| of all samples; where samples carry the label pprof::base=true, which
 * the tool gives to those of -diff_base, it is the sum of these only. For a profile made by
 * profile_diff(), profile_total() of the earlier one gives the percentages of -diff_base, and the
 * table's own total those of -base. Sums stop at the ends of int64_t.
 *
 * The tool drops by default rows with |cum| < 0.005 * |the sum of all flat values|, and limits -top
 * to no number of rows.
 */
int profile_table_build(struct profile *p, size_t type, struct profile_table *ret_table,
			struct err *err);
void profile_table_release(struct profile_table *table);
int64_t profile_total(const struct profile *p, size_t type);

/*
 * A call tree from the root: nodes[0] is the root; children are linked by first_child and sibling,
 * |total| falling, then by name. Samples of value 0 have no part in it.
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
 * "root;caller;leaf value\n" for each distinct stack of names, sorted by the names from the root;
 * ';' and control characters in names become ':' and ' '. Stacks whose values come to 0 are left
 * out, as are those without frames.
 */
int profile_collapse(struct profile *p, size_t type, struct buf *out, struct err *err);
