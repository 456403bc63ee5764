/* src/query/tree.c: see tree.h. */
#include "query/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"
#include "profile/frames.h"

void query_tree_release(struct query_tree *tree)
{
	free(tree->nodes);
	intern_release(&tree->names);
	query_origins_release(&tree->origins);
	map_release(&tree->children);
	*tree = (struct query_tree){0};
}

static int tree_new_node(struct query_tree *t, uint32_t name, uint32_t parent, uint32_t *ret_node,
			 struct err *err)
{
	if (t->len == QUERY_TREE_MAX_NODES)
		return err_set(err, -E2BIG,
			       "the call tree has more than %u nodes; use a shorter window, or the "
			       "function table",
			       QUERY_TREE_MAX_NODES);
	if (t->len == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 1024;
		struct query_tree_node *nodes = realloc(t->nodes, cap * sizeof(*nodes));

		if (!nodes)
			return err_oom(err);
		t->nodes = nodes;
		t->cap = cap;
	}
	t->nodes[t->len] = (struct query_tree_node){.name = name, .parent = parent};
	*ret_node = t->len++;
	return 0;
}

static uint64_t child_key(uint32_t parent, uint32_t name)
{
	return (uint64_t)parent << 32 | name;
}

/*
 * An only child is found by looking at it, so the map holds only children with siblings. Most nodes
 * of a call tree have none.
 */
static bool tree_find_child(const struct query_tree *t, uint32_t parent, uint32_t name,
			    uint32_t *ret_node)
{
	uint32_t newest = t->nodes[parent].first_child;
	uint64_t found;

	if (newest == 0)
		return false;
	if (t->nodes[newest].name == name) {
		*ret_node = newest;
		return true;
	}
	if (t->nodes[newest].sibling == 0 ||
	    !map_get(&t->children, child_key(parent, name), &found))
		return false;
	*ret_node = (uint32_t)found;
	return true;
}

static int tree_child(struct query_tree *t, uint32_t parent, uint32_t name, uint32_t *ret_node,
		      struct err *err)
{
	uint32_t newest = t->nodes[parent].first_child, node = 0;
	int r;

	if (tree_find_child(t, parent, name, ret_node))
		return 0;
	r = tree_new_node(t, name, parent, &node, err);
	if (r < 0)
		return r;
	if (newest != 0) {
		if (t->nodes[newest].sibling == 0)
			r = map_put(&t->children, child_key(parent, t->nodes[newest].name), newest);
		if (r < 0 || map_put(&t->children, child_key(parent, name), node) < 0)
			return err_oom(err);
	}
	t->nodes[node].sibling = newest;
	t->nodes[parent].first_child = node;
	*ret_node = node;
	return 0;
}

/* One window being added to the tree. */
struct tree_window {
	struct query_tree *tree;
	struct profile *profile;
	struct profile_frames frames;
	uint32_t *names; /* by string id of the profile: id in the tree + 1, 0 if not known yet */
	uint32_t below;	 /* the node that stacks begin at */
	size_t index;
};

static int tree_name(struct tree_window *w, uint32_t string, uint32_t *ret_name, struct err *err)
{
	uint32_t name;

	if (w->names[string] == 0) {
		if (intern_add(&w->tree->names, profile_string(w->profile, string), &name) < 0)
			return err_oom(err);
		w->names[string] = name + 1;
	}
	*ret_name = w->names[string] - 1;
	return 0;
}

static int tree_add_sample(struct tree_window *w, const struct profile_sample *s, struct err *err)
{
	struct query_tree *t = w->tree;
	int64_t value = s->values[0];
	const struct profile_frame *frames;
	uint32_t node = w->below, name = 0;
	size_t n, i = w->index;
	int r = profile_frames_of(&w->frames, s, &frames, &n, err);

	if (r < 0)
		return r;
	t->nodes[0].total[i] = sum_add(t->nodes[0].total[i], value);
	if (node != 0)
		t->nodes[node].total[i] = sum_add(t->nodes[node].total[i], value);
	for (size_t k = 0; k < n; k++) {
		r = tree_name(w, frames[k].name, &name, err);
		if (r == 0)
			r = tree_child(t, node, name, &node, err);
		if (r < 0)
			return r;
		t->nodes[node].total[i] = sum_add(t->nodes[node].total[i], value);
	}
	t->nodes[node].self[i] = sum_add(t->nodes[node].self[i], value);
	return 0;
}

static int tree_add_window(struct query_tree *t, const struct query_sums *sums, size_t index,
			   uint32_t below, struct err *err)
{
	struct tree_window w = {
		.tree = t, .profile = sums->sum[index].profile, .below = below, .index = index};
	_cleanup_free_ uint32_t *names = NULL;
	int r = profile_frames_init(&w.frames, w.profile, err);

	if (r == 0) {
		names = calloc(profile_n_strings(w.profile) + 1, sizeof(*names));
		r = names ? 0 : err_oom(err);
	}
	w.names = names;
	for (size_t i = 0; r == 0 && i < profile_n_samples(w.profile); i++) {
		const struct profile_sample *s = profile_sample_at(w.profile, i);

		if (s->values[0] != 0)
			r = tree_add_sample(&w, s, err);
	}
	if (r == 0 && query_origins_add(&t->origins, &t->names, &w.frames) < 0)
		r = err_oom(err);
	profile_frames_release(&w.frames);
	return r;
}

int query_tree_init(struct query_tree *tree, struct err *err)
{
	uint32_t id;

	*tree = (struct query_tree){0};
	if (intern_add(&tree->names, view_str(""), &id) < 0)
		return err_oom(err);
	return tree_new_node(tree, 0, 0, &id, err);
}

int query_tree_add(struct query_tree *tree, const struct query_sums *sums, const char *below,
		   struct err *err)
{
	uint32_t name, node = 0;
	int r = 0;

	if (below && intern_add(&tree->names, view_str(below), &name) < 0)
		return err_oom(err);
	if (below)
		r = tree_child(tree, 0, name, &node, err);
	for (size_t i = 0; r == 0 && i < sums->n; i++)
		r = tree_add_window(tree, sums, i, node, err);
	return r;
}
