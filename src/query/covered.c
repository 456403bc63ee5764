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

int query_covered_read(struct store *store, int64_t from_ns, int64_t to_ns, int64_t step_ns,
		       size_t n, struct query_covered *ret_covered, struct err *err)
{
	static const enum metric_id ids[] = {METRIC_SONDE_COVERED, METRIC_SONDE_SPREAD};
	struct query_covered c = {.n = n};
	int r = 0;

	for (size_t i = 0; r == 0 && n > 0 && i < ARRAY_SIZE(ids); i++) {
		const struct store_metric_query query = {
			.service = COVERED_SERVICE,
			.metric = registry_metrics[ids[i]].name,
			.from_ns = from_ns,
			.to_ns = to_ns,
			.step_ns = step_ns,
			.n_points = n,
		};
		struct store_metric_answer answer = {0};

		r = store_metrics(store, &query, &answer, err);
		if (r == 0)
			r = answer_take(&answer, i == 0 ? c.covered : c.spread, n, err);
		store_metric_answer_release(&answer);
	}
	if (r < 0)
		query_covered_release(&c);
	else
		*ret_covered = c;
	return r;
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
