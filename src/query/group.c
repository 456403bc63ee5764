/*
 * src/query/group.c: see group.h.
 *
 * Each value is a sum of its own over the label sets that have it, so its cost is bounded by
 * QUERY_MAX_GROUPS; which values are the largest is known before, from the totals.
 */
#include "query/group.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"

#define GROUP_REST "(other)"
#define GROUP_MAX_NAME 1024
#define GROUP_MAX_FILTERS 32

struct group_value {
	const char *text; /* of names */
	double weight;	  /* in the window in which it is larger */
};

struct grouping {
	struct store *store;
	const struct query_flame_request *rq;
	struct intern names;	    /* values */
	struct group_value *values; /* by name; the largest first once sorted */
	size_t n_values;
	struct map samples[2]; /* by window: hash of the stack to its sample */
};

static void grouping_release(struct grouping *g)
{
	intern_release(&g->names);
	free(g->values);
	map_release(&g->samples[0]);
	map_release(&g->samples[1]);
}

static int group_weigh(struct grouping *g, const struct store_window *window, struct err *err)
{
	_cleanup_free_ struct store_label_total *totals = NULL;
	struct group_value *grown;
	size_t n = 0;
	int r = store_label_totals(g->store, window, g->rq->group, &totals, &n, err);

	if (r < 0)
		return r;
	grown = reallocarray(g->values, g->n_values + n + 1, sizeof(*grown));
	if (!grown)
		return err_oom(err);
	g->values = grown;
	for (size_t i = 0; i < n; i++) {
		struct group_value *v;
		uint32_t id;

		if (intern_add(&g->names, view_str(totals[i].value), &id) < 0)
			return err_oom(err);
		v = &g->values[id];
		if (id == g->n_values) {
			*v = (struct group_value){
				.text = (const char *)intern_get(&g->names, id).data};
			g->n_values++;
		}
		/* Windows need not be of the same length. */
		v->weight = fmax(v->weight,
				 fabs(totals[i].total) / (double)(window->to_ns - window->from_ns));
	}
	return 0;
}

static int compare_values(const void *a, const void *b)
{
	const struct group_value *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return strcmp(x->text, y->text);
}

/* Samples of equal stacks become one. */
static int group_index(struct grouping *g, struct query_sums *sums, struct err *err)
{
	for (size_t i = 0; i < sums->n; i++) {
		struct profile *p = sums->sum[i].profile;

		for (size_t k = 0; k < profile_n_samples(p); k++) {
			const struct profile_sample *s = profile_sample_at(p, k);
			uint64_t hash = profile_stack_hash(p, s->stack), at;

			if (map_get(&g->samples[i], hash, &at)) {
				int64_t known = profile_sample_at(p, at)->values[0];

				profile_set_value(p, at, 0, sum_add(known, s->values[0]));
				profile_set_value(p, k, 0, 0);
			} else if (map_put(&g->samples[i], hash, k) < 0) {
				return err_oom(err);
			}
		}
	}
	return 0;
}

/* What one value has is no longer in the rest. */
static void group_subtract(const struct grouping *g, struct query_sums *rest,
			   const struct query_sums *part)
{
	for (size_t i = 0; i < part->n; i++) {
		const struct profile *p = part->sum[i].profile;

		for (size_t k = 0; k < profile_n_samples(p); k++) {
			const struct profile_sample *s = profile_sample_at(p, k);
			uint64_t at;
			int64_t left;

			if (!map_get(&g->samples[i], profile_stack_hash(p, s->stack), &at))
				continue;
			left = profile_sample_at(rest->sum[i].profile, at)->values[0];
			profile_set_value(rest->sum[i].profile, at, 0,
					  sum_add(left, -s->values[0]));
		}
	}
}

/* The window, of this value only; damage was counted with the whole. */
static struct store_window narrowed(const struct store_window *w, const struct label *value,
				    struct label *filters)
{
	struct store_window narrow = *w;

	if (w->n_filters)
		memcpy(filters, w->filters, w->n_filters * sizeof(*filters));
	filters[w->n_filters] = *value;
	narrow.filters = filters;
	narrow.n_filters++;
	narrow.damaged = NULL;
	return narrow;
}

static int group_add_value(struct grouping *g, const char *value, struct query_sums *rest,
			   struct query_tree *tree, struct err *err)
{
	_cleanup_(query_sums_release) struct query_sums sums = {0};
	const struct label label = {.key = g->rq->group, .value = value};
	struct label filters[2][GROUP_MAX_FILTERS + 1];
	struct store_window window = narrowed(g->rq->window, &label, filters[0]), before;
	char name[GROUP_MAX_NAME];
	int r;

	if (g->rq->before)
		before = narrowed(g->rq->before, &label, filters[1]);
	(void)snprintf(name, sizeof(name), "%s=%s", g->rq->group, value);
	r = query_sums_read(g->store, &window, g->rq->before ? &before : NULL, &sums, err);
	if (r < 0)
		return r;
	group_subtract(g, rest, &sums);
	return query_tree_add(tree, &sums, name, err);
}

static bool is_left(const struct query_sums *sums)
{
	for (size_t i = 0; i < sums->n; i++)
		for (size_t k = 0; k < profile_n_samples(sums->sum[i].profile); k++)
			if (profile_sample_at(sums->sum[i].profile, k)->values[0] != 0)
				return true;
	return false;
}

int query_group_add(struct store *store, const struct query_flame_request *rq,
		    struct query_sums *sums, struct query_tree *tree, struct err *err)
{
	_cleanup_(grouping_release) struct grouping g = {.store = store, .rq = rq};
	char rest[GROUP_MAX_NAME];
	int r;

	if (rq->window->n_filters > GROUP_MAX_FILTERS)
		return err_set(err, -EINVAL, "at most %d labels are allowed", GROUP_MAX_FILTERS);
	r = group_weigh(&g, rq->window, err);
	if (r == 0 && rq->before)
		r = group_weigh(&g, rq->before, err);
	if (r == 0)
		r = group_index(&g, sums, err);
	if (r < 0)
		return r;
	if (g.n_values > 1)
		qsort(g.values, g.n_values, sizeof(*g.values), compare_values);
	for (size_t i = 0; r == 0 && i < MIN(g.n_values, (size_t)QUERY_MAX_GROUPS); i++)
		r = group_add_value(&g, g.values[i].text, sums, tree, err);
	if (r < 0 || !is_left(sums))
		return r;
	(void)snprintf(rest, sizeof(rest), "%s=" GROUP_REST, rq->group);
	return query_tree_add(tree, sums, rest, err);
}
