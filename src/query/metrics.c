/* src/query/metrics.c: see metrics.h. */
#include "query/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "query/level.h"

static const char *find_label(const struct label *labels, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(labels[i].key, key) == 0)
			return labels[i].value;
	return NULL;
}

static const char *find_value(const struct store_series *s, const char *key)
{
	const char *value = find_label(s->attributes, s->n_attributes, key);

	return value ? value : find_label(s->labels, s->n_labels, key);
}

/* Identifies the group of a series: the values, or its index. */
static int name_group(const struct query_grouping *g, const struct store_series *s, uint32_t place,
		      struct buf *name)
{
	int r = 0;

	buf_clear(name);
	if (g->apart)
		return buf_append(name, &place, sizeof(place));
	for (size_t i = 0; r == 0 && i < g->n_keys; i++) {
		const char *value = find_value(s, g->keys[i]);

		r = buf_append_byte(name, value != NULL);
		if (r == 0 && value)
			r = buf_append(name, value, strlen(value) + 1);
	}
	return r;
}

static void begin_group(const struct query_grouping *g, struct store_series *s,
			struct query_group *group)
{
	*group = (struct query_group){
		.points = s->points, .sums = s->sums, .width = s->width, .series = s};
	for (size_t i = 0; !g->apart && i < g->n_keys; i++) {
		const char *value = find_value(s, g->keys[i]);

		if (value)
			group->labels[group->n_labels++] = (struct label){g->keys[i], value};
	}
}

static double combine(double a, double b, enum store_aggregate how)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	switch (how) {
	case STORE_MIN:
		return MIN(a, b);
	case STORE_MAX:
		return MAX(a, b);
	default:
		return a + b;
	}
}

static void add_row(double *to, const double *from, size_t n, enum store_aggregate how)
{
	for (size_t i = 0; i < n; i++)
		to[i] = combine(to[i], from[i], how);
}

/* Into the rows of the group's first series, which are not needed on their own. */
static void add_series(const struct store_metric_query *q, struct query_group *group,
		       const struct store_series *s)
{
	struct store_series *first = group->series;
	enum store_aggregate how = s->kind == METRIC_GAUGE ? q->aggregate : STORE_AVERAGE;

	if (!first || s->width != first->width)
		return;
	add_row(first->points, s->points, q->n_points * s->width, how);
	if (s->sums && first->sums)
		add_row(first->sums, s->sums, q->n_points, how);
	else if (s->sums)
		first->sums = s->sums;
	group->sums = first->sums;
}

static int make_groups(const struct store_metric_query *q, const struct query_grouping *g,
		       struct query_metrics *m)
{
	_cleanup_(intern_release) struct intern names = {0};
	_cleanup_(buf_release) struct buf name = {0};
	int r = 0;

	m->groups = calloc(m->answer.len + 1, sizeof(*m->groups));
	if (!m->groups)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < m->answer.len; i++) {
		struct store_series *s = &m->answer.series[i];
		uint32_t id = 0;

		r = name_group(g, s, (uint32_t)i, &name);
		if (r == 0)
			r = intern_add(&names, buf_view(&name), &id);
		if (r < 0)
			break;
		if (id == m->len)
			begin_group(g, s, &m->groups[m->len++]);
		else
			add_series(q, &m->groups[id], s);
	}
	return r;
}

int query_metrics(struct store *store, const struct store_metric_query *query,
		  const struct query_grouping *grouping, struct query_metrics *ret_metrics,
		  struct err *err)
{
	struct query_metrics m = {0};
	int r = store_metrics(store, query, &m.answer, err);

	if (r == 0 && !grouping->apart && query->metric && m.answer.known &&
	    m.answer.kind == METRIC_GAUGE && query->aggregate != STORE_MIN &&
	    query->aggregate != STORE_MAX)
		r = query_level(store, query, &m.answer, &m.before, err);
	if (r == 0 && make_groups(query, grouping, &m) < 0)
		r = err_oom(err);
	if (r < 0) {
		query_metrics_release(&m);
		return r;
	}
	*ret_metrics = m;
	return 0;
}

void query_metrics_release(struct query_metrics *metrics)
{
	free(metrics->groups);
	store_metric_answer_release(&metrics->answer);
	store_metric_answer_release(&metrics->before);
	*metrics = (struct query_metrics){0};
}
