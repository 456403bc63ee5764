/* src/query/metrics.c: see metrics.h. */
#include "query/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"

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

static int compare_sizes(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* The usual number of steps between two points; 0 if there are fewer. */
static size_t usual_gap(const double *points, size_t n, size_t *gaps)
{
	size_t len = 0, last = n;

	for (size_t i = 0; i < n; i++) {
		if (isnan(points[i]))
			continue;
		if (last < i)
			gaps[len++] = i - last;
		last = i;
	}
	if (len)
		qsort(gaps, len, sizeof(*gaps), compare_sizes);
	return len ? gaps[(len - 1) / 2] : 0;
}

/* A process that is read at longer intervals has its last value until the next one is due. */
static void hold_row(double *points, size_t n, size_t *gaps)
{
	size_t gap = usual_gap(points, n, gaps), last = n;

	for (size_t i = 0; gap > 1 && i < n; i++) {
		if (!isnan(points[i]))
			last = i;
		else if (last < i && i - last <= gap)
			points[i] = points[last];
	}
}

/* The time between two readings of a series; INFINITY if there are no two. */
static double interval_of(const struct store_series *s, size_t n)
{
	uint64_t readings = 0;

	for (size_t i = 0; i < n; i++)
		readings += s->readings[i];
	return readings > 1 ? (double)(s->last_ns - s->first_ns) / (double)(readings - 1)
			    : (double)INFINITY;
}

/*
 * One that lived for a part of the step counts for that part: otherwise those that end and those
 * that follow them would add up. stretch: how much less often it is read than others.
 */
static void weigh_row(struct store_series *s, size_t n, double stretch, const uint32_t *most)
{
	for (size_t i = 0; i < n; i++)
		if (s->readings[i] && s->readings[i] * stretch < most[i])
			s->points[i] *= s->readings[i] * stretch / most[i];
}

/* Prepares series for being summed. */
static int level_series(const struct store_metric_query *q, struct store_metric_answer *a)
{
	_cleanup_free_ uint32_t *most = calloc(q->n_points + 1, sizeof(*most));
	_cleanup_free_ size_t *gaps = calloc(q->n_points + 1, sizeof(*gaps));
	double least = INFINITY;

	if (!most || !gaps)
		return -ENOMEM;
	for (size_t i = 0; i < a->len && a->series[i].readings; i++) {
		least = MIN(least, interval_of(&a->series[i], q->n_points));
		for (size_t k = 0; k < q->n_points; k++)
			most[k] = MAX(most[k], a->series[i].readings[k]);
	}
	for (size_t i = 0; i < a->len && a->series[i].readings; i++) {
		struct store_series *s = &a->series[i];
		double own = interval_of(s, q->n_points);

		if (q->aggregate == STORE_AVERAGE)
			weigh_row(s, q->n_points, isinf(own) || least <= 0 ? 1 : own / least, most);
		hold_row(s->points, q->n_points, gaps);
	}
	return 0;
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

	if (r < 0)
		return r;
	if ((!grouping->apart && query->metric && query->aggregate != STORE_MIN &&
	     query->aggregate != STORE_MAX && level_series(query, &m.answer) < 0) ||
	    make_groups(query, grouping, &m) < 0) {
		query_metrics_release(&m);
		return err_oom(err);
	}
	*ret_metrics = m;
	return 0;
}

void query_metrics_release(struct query_metrics *metrics)
{
	free(metrics->groups);
	store_metric_answer_release(&metrics->answer);
	*metrics = (struct query_metrics){0};
}
