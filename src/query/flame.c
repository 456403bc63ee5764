/*
 * src/query/flame.c: the flame graph of one or two windows, small enough to send.
 *
 * The largest nodes stay. A node weighs as much as in its larger window, and at least as much as
 * its heaviest child, so a node that stays keeps its ancestors. Everything else is folded into one
 * "(other)" per parent.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"
#include "query/group.h"

#define OTHER "(other)"

struct fold {
	struct query_tree tree;
	uint64_t divisors[2];
	float *weights;	     /* by node */
	uint64_t *order;     /* weight << 32 | node, heaviest first */
	uint32_t *children;  /* of one node */
	uint32_t *n_folded;  /* by node: children that are folded */
	bool *kept;	     /* by node */
	uint32_t *name_map;  /* name in the tree to name in the response + 1 */
	uint32_t other;	     /* the name "(other)" in the tree */
	uint32_t other_name; /* and in the response */
	int64_t run[2];	     /* distributed so far, by window */
	double given[2];     /* and its value */
	struct view group;   /* the label that the first frames are values of; "": none */
	struct intern origins;
	struct query_flame flame;
};

static void fold_release(struct fold *f)
{
	query_tree_release(&f->tree);
	intern_release(&f->origins);
	free(f->weights);
	free(f->order);
	free(f->children);
	free(f->n_folded);
	free(f->kept);
	free(f->name_map);
	query_flame_release(&f->flame);
}

static void fold_weigh(struct fold *f)
{
	for (uint32_t i = f->tree.len; i-- > 0;) {
		const struct query_tree_node *n = &f->tree.nodes[i];
		double w = 0;

		for (size_t k = 0; k < 2; k++)
			w = fmax(w, fabs((double)n->total[k]) / (double)f->divisors[k]);
		/* Its children have already raised its weight. */
		f->weights[i] = fmaxf(f->weights[i], (float)w);
		if (i > 0)
			f->weights[n->parent] = fmaxf(f->weights[n->parent], f->weights[i]);
	}
}

static int compare_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Heaviest first. With equal weights, parents before children, which have higher numbers. */
static void fold_order(struct fold *f, bool by_weight)
{
	for (uint32_t i = 0; i < f->tree.len; i++) {
		uint32_t bits;

		/* Positive floats have the same order as their bits. */
		memcpy(&bits, &f->weights[i], sizeof(bits));
		f->order[i] = (uint64_t)~bits << 32 | i;
	}
	if (by_weight)
		qsort(f->order, f->tree.len, sizeof(*f->order), compare_order);
}

/* Marks the nodes that stay; with their "(other)" nodes they are at most max_nodes. */
static void fold_choose(struct fold *f, size_t max_nodes)
{
	struct query_tree_node *nodes = f->tree.nodes;
	size_t size = 0;

	for (uint32_t i = 1; i < f->tree.len; i++)
		f->n_folded[nodes[i].parent]++;
	fold_order(f, f->tree.len > max_nodes);
	for (uint32_t i = 0; i < f->tree.len; i++) {
		uint32_t node = (uint32_t)f->order[i];
		/*
		 * Itself, an "(other)" below it, and its parent's "(other)" if this was the last
		 * one in it.
		 */
		size_t more = 1 + (nodes[node].first_child != 0);
		size_t less = node > 0 && f->n_folded[nodes[node].parent] == 1;

		/* Nodes folded by the store join those folded here. */
		if (nodes[node].name == f->other && nodes[node].first_child == 0)
			continue;
		if (size + more - less > max_nodes)
			break;
		size += more - less;
		f->kept[node] = true;
		if (node > 0)
			f->n_folded[nodes[node].parent]--;
	}
}

static int compare_children(const void *a, const void *b, void *arg)
{
	const struct fold *f = arg;
	const struct query_tree_node *x = &f->tree.nodes[*(const uint32_t *)a];
	const struct query_tree_node *y = &f->tree.nodes[*(const uint32_t *)b];
	struct view p, q;
	int c;

	for (size_t k = 0; k < 2; k++)
		if (x->total[k] != y->total[k])
			return x->total[k] < y->total[k] ? 1 : -1;
	p = intern_get(&f->tree.names, x->name);
	q = intern_get(&f->tree.names, y->name);
	c = memcmp(p.data, q.data, MIN(p.len, q.len));
	return c ? c : (p.len > q.len) - (p.len < q.len);
}

/* Relinks the children that stay, in order, and drops the rest. */
static void fold_sort(struct fold *f)
{
	struct query_tree_node *nodes = f->tree.nodes;

	for (uint32_t node = 0; node < f->tree.len; node++) {
		uint32_t *link = &nodes[node].first_child;
		uint32_t n = 0;

		if (!f->kept[node])
			continue;
		for (uint32_t c = *link; c != 0; c = nodes[c].sibling)
			if (f->kept[c])
				f->children[n++] = c;
		if (n > 1)
			qsort_r(f->children, n, sizeof(*f->children), compare_children, f);
		for (uint32_t i = 0; i < n; i++) {
			*link = f->children[i];
			link = &nodes[f->children[i]].sibling;
		}
		*link = 0;
	}
}

static uint32_t fold_name(struct fold *f, uint32_t name)
{
	if (f->name_map[name] == 0)
		f->name_map[name] = (uint32_t)++f->flame.n_names;
	return f->name_map[name] - 1;
}

/* Takes value from the undistributed rest, so rounding errors never add up. */
static double fold_give(struct fold *f, size_t window, int64_t value)
{
	double before = f->given[window];

	if (value == 0)
		return 0;
	f->run[window] = sum_add(f->run[window], value);
	f->given[window] = query_value(f->run[window], f->divisors[window]);
	return f->given[window] - before;
}

static void fold_append(struct fold *f, uint32_t name, uint32_t depth, const int64_t self[2])
{
	f->flame.nodes[f->flame.n_nodes++] = (struct query_node){
		.name = name,
		.depth = depth,
		.self = fold_give(f, 0, self[0]),
		.before_self = fold_give(f, 1, self[1]),
	};
}

static void fold_append_other(struct fold *f, uint32_t node, uint32_t depth)
{
	const struct query_tree_node *n = &f->tree.nodes[node];
	struct query_node *other = &f->flame.nodes[f->flame.n_nodes];
	int64_t rest[2];

	/* Everything below the node except below children that stay. */
	for (size_t k = 0; k < 2; k++) {
		rest[k] = sum_add(n->total[k], -n->self[k]);
		for (uint32_t c = n->first_child; c != 0; c = f->tree.nodes[c].sibling)
			rest[k] = sum_add(rest[k], -f->tree.nodes[c].total[k]);
	}
	fold_append(f, f->other_name, depth, rest);
	f->flame.folded += other->self;
}

/* Totals and ends, from the back: each node adds itself to its parent. */
static void fold_total(struct query_flame *flame, uint32_t *parents)
{
	for (size_t i = flame->n_nodes; i-- > 0;) {
		struct query_node *n = &flame->nodes[i];

		n->total += n->self;
		n->before_total += n->before_self;
		n->end = MAX(n->end, (uint32_t)i + 1);
		if (i > 0) {
			struct query_node *parent = &flame->nodes[parents[i]];

			parent->total += n->total;
			parent->before_total += n->before_total;
			parent->end = MAX(parent->end, n->end);
		}
	}
	flame->total = flame->nodes[0].total;
	flame->before_total = flame->nodes[0].before_total;
}

/* Depth first without recursion: stacks can be arbitrarily deep. */
static void fold_walk(struct fold *f, uint32_t *parents, uint32_t *flame_of)
{
	const struct query_tree_node *nodes = f->tree.nodes;
	uint32_t node = 0, depth = 0;

	for (;;) {
		flame_of[node] = (uint32_t)f->flame.n_nodes;
		parents[f->flame.n_nodes] = flame_of[nodes[node].parent];
		fold_append(f, fold_name(f, nodes[node].name), depth, nodes[node].self);
		if (nodes[node].first_child != 0) {
			node = nodes[node].first_child;
			depth++;
			continue;
		}
		for (;; node = nodes[node].parent, depth--) {
			if (f->n_folded[node] > 0) {
				parents[f->flame.n_nodes] = flame_of[node];
				fold_append_other(f, node, depth + 1);
			}
			if (node == 0)
				return;
			if (nodes[node].sibling != 0)
				break;
		}
		node = nodes[node].sibling;
	}
}

/* The kind of a name and its module, as one text: equal origins are equal bytes. */
static int fold_origin(struct fold *f, uint32_t name, struct view file, struct buf *scratch,
		       uint32_t *ret_origin)
{
	struct view mapping = query_origins_mapping(&f->tree.origins, name);
	struct view text = intern_get(&f->tree.names, name), module;
	enum query_kind kind = query_kind_of(text, file, mapping);

	if (name == 0 || name == f->other)
		kind = QUERY_KIND_OTHER;
	else if (f->group.len && text.len > f->group.len && text.data[f->group.len] == '=' &&
		 memcmp(text.data, f->group.data, f->group.len) == 0)
		kind = QUERY_KIND_GROUP;
	module = query_module_of(kind, text, file, mapping);
	buf_clear(scratch);
	if (buf_append_byte(scratch, (uint8_t)kind) < 0 ||
	    buf_append(scratch, module.data, module.len) < 0)
		return -ENOMEM;
	return intern_add(&f->origins, buf_view(scratch), ret_origin);
}

static int fold_name_origins(struct fold *f)
{
	_cleanup_(buf_release) struct buf scratch = {0};
	int r = 0;

	f->flame.origin = calloc(f->flame.n_names + 1, sizeof(*f->flame.origin));
	if (!f->flame.origin)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < f->tree.names.len; i++)
		if (f->name_map[i] != 0)
			r = fold_origin(f, i, query_origins_file(&f->tree.origins, i), &scratch,
					&f->flame.origin[f->name_map[i] - 1]);
	return r;
}

static char *put_text(char **at, struct view text)
{
	char *start = *at;

	(void)view_copy(text, 0, start, text.len);
	*at += text.len + 1;
	return start;
}

/* Origins and their modules in one block. */
static int fold_copy_origins(struct fold *f)
{
	size_t n = f->origins.len, bytes = 0;
	char *at;

	for (uint32_t i = 0; i < n; i++)
		bytes += intern_get(&f->origins, i).len;
	f->flame.origins = calloc(1, n * sizeof(*f->flame.origins) + bytes + 1);
	if (!f->flame.origins)
		return -ENOMEM;
	f->flame.n_origins = n;
	at = (char *)(f->flame.origins + n);
	for (uint32_t i = 0; i < n; i++) {
		struct view text = intern_get(&f->origins, i);

		f->flame.origins[i].kind = (enum query_kind)text.data[0];
		f->flame.origins[i].module = put_text(&at, view_of(text.data + 1, text.len - 1));
	}
	return 0;
}

/* Pointers and bytes in one block. */
static int fold_copy_names(struct fold *f)
{
	size_t n = f->flame.n_names, bytes = 0;
	char *at;

	for (uint32_t i = 0; i < f->tree.names.len; i++)
		if (f->name_map[i] != 0)
			bytes += intern_get(&f->tree.names, i).len +
				 query_origins_file(&f->tree.origins, i).len +
				 query_origins_variants(&f->tree.origins, i).len + 3;
	f->flame.names = calloc(1, 3 * n * sizeof(char *) + bytes + 1);
	if (!f->flame.names)
		return -ENOMEM;
	f->flame.files = f->flame.names + n;
	f->flame.variants = f->flame.files + n;
	at = (char *)(f->flame.variants + n);
	for (uint32_t i = 0; i < f->tree.names.len; i++) {
		size_t to = f->name_map[i] - 1;

		if (f->name_map[i] == 0)
			continue;
		f->flame.names[to] = put_text(&at, intern_get(&f->tree.names, i));
		f->flame.files[to] = put_text(&at, query_origins_file(&f->tree.origins, i));
		f->flame.variants[to] = put_text(&at, query_origins_variants(&f->tree.origins, i));
	}
	return 0;
}

static int fold_emit(struct fold *f, size_t max_nodes, struct err *err)
{
	size_t cap = MIN(max_nodes, (size_t)f->tree.len) + 1;
	_cleanup_free_ uint32_t *parents = calloc(cap, sizeof(*parents));
	_cleanup_free_ uint32_t *flame_of = calloc((size_t)f->tree.len + 1, sizeof(*flame_of));

	f->name_map = calloc((size_t)f->tree.names.len + 1, sizeof(*f->name_map));
	f->flame.nodes = calloc(cap, sizeof(*f->flame.nodes));
	if (!parents || !flame_of || !f->name_map || !f->flame.nodes)
		return err_oom(err);
	(void)fold_name(f, 0);
	f->other_name = fold_name(f, f->other);
	fold_walk(f, parents, flame_of);
	fold_total(&f->flame, parents);
	if (fold_copy_names(f) < 0 || fold_name_origins(f) < 0 || fold_copy_origins(f) < 0)
		return err_oom(err);
	return 0;
}

int query_flame(struct store *store, const struct query_flame_request *rq,
		struct query_flame *ret_flame, struct err *err)
{
	_cleanup_(query_sums_release) struct query_sums sums = {0};
	_cleanup_(fold_release) struct fold f = {.group = view_str(rq->group ? rq->group : "")};
	int r;

	if (rq->max_nodes < QUERY_MIN_NODES)
		return err_set(err, -EINVAL, "a flame graph needs at least %d nodes",
			       QUERY_MIN_NODES);
	r = query_sums_read(store, rq->window, rq->before, &sums, err);
	if (r == 0)
		r = query_tree_init(&f.tree, err);
	if (r == 0)
		r = rq->group ? query_group_add(store, rq, &sums, &f.tree, err)
			      : query_tree_add(&f.tree, &sums, NULL, err);
	if (r < 0)
		return r;
	f.divisors[0] = query_divisor(&sums.sum[0]);
	f.divisors[1] = query_divisor(&sums.sum[1]);
	f.weights = calloc((size_t)f.tree.len + 1, sizeof(*f.weights));
	f.order = calloc((size_t)f.tree.len + 1, sizeof(*f.order));
	f.children = calloc((size_t)f.tree.len + 1, sizeof(*f.children));
	f.n_folded = calloc((size_t)f.tree.len + 1, sizeof(*f.n_folded));
	f.kept = calloc((size_t)f.tree.len + 1, sizeof(*f.kept));
	if (!f.weights || !f.order || !f.children || !f.n_folded || !f.kept ||
	    intern_add(&f.tree.names, view_str(OTHER), &f.other) < 0)
		return err_oom(err);
	fold_weigh(&f);
	fold_choose(&f, rq->max_nodes);
	fold_sort(&f);
	r = fold_emit(&f, rq->max_nodes, err);
	if (r < 0)
		return r;
	query_sums_describe(&sums, &f.flame.about);
	*ret_flame = f.flame;
	f.flame = (struct query_flame){0};
	return 0;
}

void query_flame_release(struct query_flame *flame)
{
	free(flame->nodes);
	free(flame->names);
	free(flame->origin);
	free(flame->origins);
	*flame = (struct query_flame){0};
}
