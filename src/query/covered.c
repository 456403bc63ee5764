/* src/query/covered.c: see covered.h. */
#include "query/covered.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* The agent's own service. */
#define COVERED_SERVICE "sonde"

static const char *const sources[QUERY_COVERED_SOURCES] = {"cpu", "offcpu", "readings"};

/* The source of that name; QUERY_COVERED_SOURCES if there is none. */
static size_t source_named(const char *name, size_t len)
{
	for (size_t i = 0; i < QUERY_COVERED_SOURCES; i++)
		if (strlen(sources[i]) == len && memcmp(sources[i], name, len) == 0)
			return i;
	return QUERY_COVERED_SOURCES;
}

/* Which source a type comes from. */
static size_t source_of(const char *type)
{
	return MIN(source_named(type, strcspn(type, ":")), (size_t)QUERY_COVERED_READINGS);
}

static void points_add(double *to, const double *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isnan(from[i]))
			to[i] = isnan(to[i]) ? from[i] : to[i] + from[i];
}

static const char *source_name(const struct store_series *s)
{
	for (size_t i = 0; i < s->n_attributes; i++)
		if (strcmp(s->attributes[i].key, "sonde.source") == 0)
			return s->attributes[i].value;
	return "";
}

/* Each start of sonde has a series of its own. */
static int answer_take(const struct store_metric_answer *answer, double **points, size_t n,
		       struct err *err)
{
	for (size_t i = 0; i < answer->len; i++) {
		const struct store_series *s = &answer->series[i];
		const char *name = source_name(s);
		size_t source = source_named(name, strlen(name));

		if (source == QUERY_COVERED_SOURCES || !s->points)
			continue;
		if (!points[source]) {
			points[source] = calloc(n, sizeof(double));
			if (!points[source])
				return err_oom(err);
			for (size_t k = 0; k < n; k++)
				points[source][k] = NAN;
		}
		points_add(points[source], s->points, n);
	}
	return 0;
}

static int read_metric(struct store *store, enum metric_id id, struct store_metric_query query,
		       double **points, struct err *err)
{
	struct store_metric_answer answer = {0};
	int r;

	query.service = COVERED_SERVICE;
	query.metric = registry_metrics[id].name;
	r = store_metrics(store, &query, &answer, err);
	if (r == 0)
		r = answer_take(&answer, points, query.n_points, err);
	store_metric_answer_release(&answer);
	return r;
}

static int read_metrics(struct store *store, const struct store_metric_query *query,
			bool with_spread, struct query_covered *ret_covered, struct err *err)
{
	struct query_covered c = {.n = query->n_points};
	int r = 0;

	if (c.n > 0)
		r = read_metric(store, METRIC_SONDE_COVERED, *query, c.covered, err);
	if (r == 0 && c.n > 0 && with_spread)
		r = read_metric(store, METRIC_SONDE_SPREAD, *query, c.spread, err);
	if (r < 0)
		query_covered_release(&c);
	else
		*ret_covered = c;
	return r;
}

int query_covered_read(struct store *store, int64_t from_ns, int64_t to_ns, int64_t step_ns,
		       size_t n, struct query_covered *ret_covered, struct err *err)
{
	const struct store_metric_query query = {
		.from_ns = from_ns, .to_ns = to_ns, .step_ns = step_ns, .n_points = n};

	return read_metrics(store, &query, true, ret_covered, err);
}

int query_covered_read_times(struct store *store, int64_t from_ns, int64_t to_ns, int64_t step_ns,
			     size_t n, struct query_covered *ret_covered, struct err *err)
{
	const struct store_metric_query query = {
		.from_ns = from_ns, .to_ns = to_ns, .step_ns = step_ns, .n_points = n};

	return read_metrics(store, &query, false, ret_covered, err);
}

void query_covered_release(struct query_covered *c)
{
	for (size_t i = 0; i < QUERY_COVERED_SOURCES; i++) {
		free(c->covered[i]);
		free(c->spread[i]);
	}
	*c = (struct query_covered){0};
}

void query_covered_fill(const struct query_covered *c, const char *type, double *points)
{
	size_t source = source_of(type);

	if (!c->covered[source])
		return;
	for (size_t i = 0; i < c->n; i++)
		if (isnan(points[i]) && !isnan(c->covered[source][i]))
			points[i] = 0;
}

double query_covered_ns(const struct query_covered *c, const char *type, size_t i)
{
	size_t source = source_of(type);

	return c->covered[source] && i < c->n && !isnan(c->covered[source][i])
		       ? c->covered[source][i]
		       : 0;
}

bool query_covered_is_spread(const struct query_covered *c, const char *type, size_t i)
{
	size_t source = source_of(type);

	return c->spread[source] && i < c->n && !isnan(c->spread[source][i]);
}
