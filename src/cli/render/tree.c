/* src/cli/render/tree.c: the call tree from the root, indented, with the share of each branch. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/render/render.h"
#include "cli/render/units.h"
#include "cli/term.h"

/* Deeper levels are indented like this one: a target may have absurdly deep stacks. */
#define RENDER_MAX_INDENT 80

struct render_branch {
	uint32_t node;
	uint32_t depth;
};

struct render_tree_state {
	struct profile_tree tree;
	struct render_branch *stack; /* one per node: enough for any shape */
	int64_t total;		     /* the sum of |self|: a difference has both signs */
	double cutoff;
	uint64_t lines;
	uint64_t cut_nodes;
	double cut_value;
	const char *unit;
};

static void render_tree_state_release(struct render_tree_state *s)
{
	profile_tree_release(&s->tree);
	free(s->stack);
}

static double render_magnitude(int64_t v)
{
	return v < 0 ? -(double)v : (double)v;
}

static void render_tree_measure(const struct render *r, struct render_tree_state *s)
{
	double total = 0;
	double smallest = 0;

	for (size_t i = 0; i < s->tree.len; i++)
		total += render_magnitude(s->tree.nodes[i].self);
	s->total = total < 9e18 ? (int64_t)total : INT64_MAX;
	s->cutoff = r->all_nodes ? 0 : total * RENDER_NODE_FRACTION;
	for (size_t i = 0; i < s->tree.len; i++) {
		double v = render_magnitude(s->tree.nodes[i].total);

		if (v > 0 && v >= s->cutoff && (smallest == 0 || v < smallest))
			smallest = v;
	}
	s->unit = render_table_unit(smallest < 9e18 ? (int64_t)smallest : INT64_MAX, s->total,
				    r->unit);
}

static int render_tree_line(const struct render *r, const struct render_tree_state *s,
			    const struct profile_node *node, uint32_t depth, struct buf *out)
{
	char total[UNITS_LABEL_LEN];
	char self[UNITS_LABEL_LEN];
	char share[UNITS_LABEL_LEN];
	char numbers[192];
	int indent = (int)MIN(depth, (uint32_t)RENDER_MAX_INDENT) + 2;
	double part = s->total ? render_magnitude(node->total) / (double)s->total : 0;
	int k;

	units_label(total, node->total, r->unit, s->unit);
	units_label(self, node->self, r->unit, s->unit);
	units_percentage(share, node->total, s->total);
	(void)snprintf(numbers, sizeof(numbers), "%10s %6s %10s", total, share, self);
	k = render_coloured(r,
			    part >= 0.10   ? TERM_RED
			    : part >= 0.02 ? TERM_YELLOW
					   : "",
			    numbers, out);
	if (k == 0)
		k = buf_printf(out, "%*s", indent, "");
	if (k == 0)
		k = node->name ? render_name(r, node->name, strlen(numbers) + (size_t)indent, out)
			       : buf_append_str(out, "(all)");
	return k < 0 ? k : buf_append_byte(out, '\n');
}

static bool render_tree_shows(const struct render *r, const struct render_tree_state *s,
			      const struct profile_node *node)
{
	if (render_magnitude(node->total) < s->cutoff || (!node->total && !node->first_child))
		return false;
	return !r->max_nodes || s->lines < r->max_nodes;
}

/* Pushes the children so that the first is popped first. */
static size_t render_tree_push(struct render_tree_state *s, const struct render_branch *parent,
			       size_t depth)
{
	size_t first = depth;
	uint32_t child = s->tree.nodes[parent->node].first_child;

	for (; child; child = s->tree.nodes[child].sibling)
		s->stack[depth++] = (struct render_branch){child, parent->depth + 1};
	for (size_t a = first, b = depth; a + 1 < b; a++) {
		struct render_branch swap = s->stack[a];

		s->stack[a] = s->stack[--b];
		s->stack[b] = swap;
	}
	return depth;
}

static int render_tree_walk(const struct render *r, struct render_tree_state *s, struct buf *out)
{
	size_t depth = 0;

	s->stack[depth++] = (struct render_branch){0, 0};
	while (depth) {
		struct render_branch at = s->stack[--depth];
		const struct profile_node *node = &s->tree.nodes[at.node];
		int k;

		if (!render_tree_shows(r, s, node)) {
			s->cut_nodes += node->total != 0;
			s->cut_value += render_magnitude(node->total);
			continue;
		}
		s->lines++;
		k = render_tree_line(r, s, node, at.depth, out);
		if (k < 0)
			return k;
		depth = render_tree_push(s, &at, depth);
	}
	return 0;
}

static int render_tree_text(const struct render *r, struct render_tree_state *s, struct buf *out)
{
	char head[64];
	char share[UNITS_LABEL_LEN];
	int k = render_header(r, s->total, s->unit, out);

	(void)snprintf(head, sizeof(head), "%10s %6s %10s", "total", "total%", "self");
	if (k == 0)
		k = render_coloured(r, TERM_BOLD, head, out);
	if (k == 0)
		k = buf_append_byte(out, '\n');
	if (k == 0)
		k = render_tree_walk(r, s, out);
	if (k < 0 || !s->cut_nodes)
		return k;
	units_percentage(share, s->cut_value < 9e18 ? (int64_t)s->cut_value : INT64_MAX, s->total);
	return buf_printf(out, "Omitted %llu branch%s with %s of the total (%s)\n",
			  (unsigned long long)s->cut_nodes, s->cut_nodes > 1 ? "es" : "",
			  share + strspn(share, " "), render_more_hint(r, s->lines));
}

int render_tree(const struct render *r, struct buf *out, struct err *err)
{
	_cleanup_(render_tree_state_release) struct render_tree_state s = {};
	int k;

	k = profile_tree_build(r->profile, r->type, &s.tree, err);
	if (k < 0)
		return k;
	s.stack = calloc(s.tree.len + 1, sizeof(*s.stack));
	if (!s.stack)
		return err_oom(err);
	render_tree_measure(r, &s);
	return render_tree_text(r, &s, out);
}
