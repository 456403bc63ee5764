/*
 * src/profile/tree.c: the call tree and the collapsed stacks. Both are the same prefix tree of
 * names; collapsed stacks are the nodes with a self value.
 */
#include "profile/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sum.h"
#include "profile/frames.h"

#define TREE_MAX_NODES ((uint32_t)4 << 20)

struct tree_builder {
	struct profile_node *nodes;
	uint32_t len;
	uint32_t cap;
	struct map children; /* parent node << 32 | name to node */
	struct profile_frames frames;
};

static void tree_builder_release(struct tree_builder *b)
{
	free(b->nodes);
	map_release(&b->children);
	profile_frames_release(&b->frames);
}

static int tree_new_node(struct tree_builder *b, uint32_t name, uint32_t *ret_node, struct err *err)
{
	if (b->len == TREE_MAX_NODES)
		return err_set(
			err, -E2BIG,
			"the call tree has more than %u nodes; use the function table (-f top)",
			TREE_MAX_NODES);
	if (b->len == b->cap) {
		uint32_t cap = b->cap ? b->cap + b->cap / 2 : 256;
		struct profile_node *nodes = realloc(b->nodes, cap * sizeof(*nodes));

		if (!nodes)
			return err_oom(err);
		b->nodes = nodes;
		b->cap = cap;
	}
	b->nodes[b->len] = (struct profile_node){.name = name};
	*ret_node = b->len++;
	return 0;
}

static int tree_child(struct tree_builder *b, uint32_t parent, uint32_t name, uint32_t *ret_node,
		      struct err *err)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint64_t found;
	uint32_t node = 0;
	int r;

	if (map_get(&b->children, key, &found)) {
		*ret_node = (uint32_t)found;
		return 0;
	}
	r = tree_new_node(b, name, &node, err);
	if (r < 0)
		return r;
	if (map_put(&b->children, key, node) < 0)
		return err_oom(err);
	b->nodes[node].sibling = b->nodes[parent].first_child;
	b->nodes[parent].first_child = node;
	*ret_node = node;
	return 0;
}

static int tree_add_sample(struct tree_builder *b, const struct profile_sample *s, int64_t value,
			   struct err *err)
{
	const struct profile_frame *frames;
	uint32_t node = 0;
	size_t n;
	int r = profile_frames_of(&b->frames, s, &frames, &n, err);

	if (r < 0)
		return r;
	b->nodes[0].total = sum_add(b->nodes[0].total, value);
	for (size_t i = 0; i < n; i++) {
		r = tree_child(b, node, frames[i].name, &node, err);
		if (r < 0)
			return r;
		b->nodes[node].total = sum_add(b->nodes[node].total, value);
	}
	b->nodes[node].self = sum_add(b->nodes[node].self, value);
	return 0;
}

static int tree_collect(struct tree_builder *b, struct profile *p, size_t type, struct err *err)
{
	uint32_t root;
	int r;

	if (type >= profile_n_types(p))
		return err_set(err, -EINVAL, "the profile has no sample type number %zu", type);
	r = profile_frames_init(&b->frames, p, err);
	if (r < 0)
		return r;
	r = tree_new_node(b, 0, &root, err);
	for (size_t i = 0; i < profile_n_samples(p) && r == 0; i++) {
		const struct profile_sample *s = profile_sample_at(p, i);

		if (s->values[type] != 0)
			r = tree_add_sample(b, s, s->values[type], err);
	}
	/* Most of the memory, and no longer needed. */
	map_release(&b->children);
	return r;
}

struct tree_order {
	const struct profile *profile;
	const struct profile_node *nodes;
};

static int compare_views(struct view a, struct view b)
{
	size_t n = MIN(a.len, b.len);
	int c = n ? memcmp(a.data, b.data, n) : 0;

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

static int compare_children(const void *a, const void *b, void *arg)
{
	const struct tree_order *order = arg;
	const struct profile_node *x = &order->nodes[*(const uint32_t *)a];
	const struct profile_node *y = &order->nodes[*(const uint32_t *)b];
	int64_t dx = sum_abs(x->total);
	int64_t dy = sum_abs(y->total);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	return compare_views(profile_string(order->profile, x->name),
			     profile_string(order->profile, y->name));
}

/* Relinks the children of each node, in order. */
static int tree_sort(struct tree_builder *b, const struct profile *p,
		     int (*compare)(const void *, const void *, void *), struct err *err)
{
	_cleanup_free_ uint32_t *children = calloc((size_t)b->len + 1, sizeof(*children));
	struct tree_order order = {.profile = p, .nodes = b->nodes};

	if (!children)
		return err_oom(err);
	for (uint32_t node = 0; node < b->len; node++) {
		uint32_t n = 0;
		uint32_t *link = &b->nodes[node].first_child;

		for (uint32_t c = *link; c != 0; c = b->nodes[c].sibling)
			children[n++] = c;
		qsort_r(children, n, sizeof(*children), compare, &order);
		for (uint32_t i = 0; i < n; i++) {
			*link = children[i];
			link = &b->nodes[children[i]].sibling;
		}
		*link = 0;
	}
	return 0;
}

int profile_tree_build(struct profile *p, size_t type, struct profile_tree *ret_tree,
		       struct err *err)
{
	_cleanup_(tree_builder_release) struct tree_builder b = {0};
	int r = tree_collect(&b, p, type, err);

	if (r < 0)
		return r;
	r = tree_sort(&b, p, compare_children, err);
	if (r < 0)
		return r;
	*ret_tree = (struct profile_tree){.nodes = TAKE_PTR(b.nodes), .len = b.len};
	return 0;
}

void profile_tree_release(struct profile_tree *tree)
{
	free(tree->nodes);
	*tree = (struct profile_tree){0};
}

static int append_frame(struct buf *line, struct view name)
{
	int r = buf_reserve(line, name.len + 1);

	for (size_t i = 0; i < name.len && r == 0; i++) {
		uint8_t c = name.data[i];

		r = buf_append_byte(line, c == ';' ? ':' : c < 0x20 || c == 0x7f ? ' ' : c);
	}
	return r;
}

/* A node on the path from the root, and the line's length before it. */
struct collapse_step {
	uint32_t node;
	size_t line_len;
};

static int collapse_enter(const struct tree_builder *b, const struct profile *p, uint32_t node,
			  struct buf *path, struct buf *line, struct buf *out)
{
	const struct profile_node *n = &b->nodes[node];
	const struct collapse_step step = {.node = node, .line_len = line->len};
	int r = buf_append(path, &step, sizeof(step));

	if (r == 0 && line->len)
		r = buf_append_byte(line, ';');
	if (r == 0)
		r = append_frame(line, profile_string(p, n->name));
	if (r == 0 && n->self != 0)
		r = buf_append(out, line->data, line->len);
	if (r == 0 && n->self != 0)
		r = buf_printf(out, " %lld\n", (long long)n->self);
	return r;
}

/* The next node in depth-first order after the last of path; path is cut back to its parent. */
static uint32_t collapse_next(const struct tree_builder *b, struct buf *path, struct buf *line)
{
	const struct collapse_step *steps = (const void *)path->data;
	uint32_t node = steps[path->len / sizeof(*steps) - 1].node;

	if (b->nodes[node].first_child)
		return b->nodes[node].first_child;
	while (path->len) {
		const struct collapse_step *last = &steps[path->len / sizeof(*steps) - 1];

		line->len = last->line_len;
		path->len -= sizeof(*last);
		if (b->nodes[last->node].sibling)
			return b->nodes[last->node].sibling;
	}
	return 0;
}

static int compare_names(const void *a, const void *b, void *arg)
{
	const struct tree_order *order = arg;

	return compare_views(
		profile_string(order->profile, order->nodes[*(const uint32_t *)a].name),
		profile_string(order->profile, order->nodes[*(const uint32_t *)b].name));
}

int profile_collapse(struct profile *p, size_t type, struct buf *out, struct err *err)
{
	_cleanup_(tree_builder_release) struct tree_builder b = {0};
	_cleanup_(buf_release) struct buf path = {0};
	_cleanup_(buf_release) struct buf line = {0};
	int r = tree_collect(&b, p, type, err);

	if (r < 0)
		return r;
	r = tree_sort(&b, p, compare_names, err);
	if (r < 0)
		return r;
	for (uint32_t node = b.nodes[0].first_child; node && r == 0;) {
		r = collapse_enter(&b, p, node, &path, &line, out);
		if (r == 0)
			node = collapse_next(&b, &path, &line);
	}
	if (r == -E2BIG)
		return err_set(
			err, r,
			"the collapsed stacks are larger than %zu MB; write a pprof file instead",
			(out->max ? out->max : BUF_DEFAULT_MAX) >> 20);
	return r < 0 ? err_set(err, r, "cannot write the stacks: %s", strerror(-r)) : 0;
}
