/* src/server/api/metrics.c: /api/metrics: the stored metrics of a service, and their curves. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "query/metrics.h"
#include "server/api/routes.h"

static const char *kind_name(enum metric_kind kind)
{
	static const char *const names[] = {"gauge", "counter", "histogram"};

	return names[kind];
}

static const char *const aggregates[] = {
	[STORE_AVERAGE] = "average",
	[STORE_MIN] = "min",
	[STORE_MAX] = "max",
	[STORE_LAST] = "last",
};

static int parse_aggregate(const struct server_params *p, enum store_aggregate *ret,
			   struct err *err)
{
	const char *name = p->text[SERVER_PARAM_AGGREGATE];

	*ret = STORE_AVERAGE;
	for (size_t i = 0; name && i < ARRAY_SIZE(aggregates); i++)
		if (strcmp(aggregates[i], name) == 0) {
			*ret = (enum store_aggregate)i;
			return 0;
		}
	return name ? err_set(err, -EINVAL,
			      "invalid aggregate '%.15s' (expected: average, min, max, last)", name)
		    : 0;
}

static void parse_grouping(const struct server_params *p, struct query_grouping *ret)
{
	_Static_assert(SERVER_PARAMS_MAX_GROUPS <= QUERY_MAX_KEYS, "all keys fit");
	*ret = (struct query_grouping){0};
	for (size_t i = 0; i < p->n_groups; i++) {
		ret->keys[ret->n_keys++] = p->groups[i];
		ret->apart = ret->apart || strcmp(p->groups[i], "*") == 0;
	}
}

static void write_points(struct json *j, const double *points, size_t n)
{
	json_array_begin(j);
	for (size_t i = 0; i < n; i++)
		json_double(j, points[i]);
	json_array_end(j);
}

static void write_label(struct json *j, const struct label *label)
{
	json_object_begin(j);
	server_answer_text(j, "key", label->key);
	json_key(j, "value");
	json_cstring(j, label->value);
	json_object_end(j);
}

static void write_labels(struct json *j, const struct query_group *g, bool apart)
{
	json_key(j, "labels");
	json_array_begin(j);
	for (size_t i = 0; i < g->n_labels; i++)
		write_label(j, &g->labels[i]);
	for (size_t i = 0; apart && i < g->series->n_attributes; i++)
		write_label(j, &g->series->attributes[i]);
	for (size_t i = 0; apart && i < g->series->n_labels; i++)
		write_label(j, &g->series->labels[i]);
	json_array_end(j);
}

/* A histogram has a row per bucket instead of points. */
static void write_group(struct json *j, const struct query_group *g, enum metric_kind kind,
			size_t n, bool apart)
{
	json_object_begin(j);
	write_labels(j, g, apart);
	json_key(j, "points");
	if (kind == METRIC_HISTOGRAM)
		json_null(j);
	else
		write_points(j, g->points, n);
	json_key(j, "buckets");
	if (kind == METRIC_HISTOGRAM) {
		json_array_begin(j);
		for (uint32_t i = 0; i < g->width; i++)
			write_points(j, g->points + i * n, n);
		json_array_end(j);
	} else {
		json_null(j);
	}
	json_key(j, "sums");
	if (g->sums)
		write_points(j, g->sums, n);
	else
		json_null(j);
	json_object_end(j);
}

static void write_curves(struct json *j, const struct server_request *rq,
			 const struct store_metric_query *q, const struct query_metrics *m,
			 bool apart)
{
	const struct store_metric_answer *a = &m->answer;
	bool gauge = a->kind == METRIC_GAUGE;

	json_object_begin(j);
	server_answer_window(j, rq->params.from_ns, rq->params.to_ns);
	server_answer_uint(j, "step_ms", (uint64_t)q->step_ns / NS_PER_MS);
	server_answer_text(j, "metric", q->metric);
	server_answer_text(j, "kind", kind_name(a->kind));
	server_answer_text(j, "unit", a->unit);
	server_answer_text(j, "aggregate", gauge ? aggregates[q->aggregate] : "sum");
	server_answer_damaged(j, *q->damaged);
	json_key(j, "bounds");
	if (a->kind == METRIC_HISTOGRAM)
		write_points(j, a->bounds, a->n_bounds);
	else
		json_null(j);
	json_key(j, "series");
	json_array_begin(j);
	for (size_t i = 0; i < m->len; i++)
		write_group(j, &m->groups[i], a->kind, q->n_points, apart);
	json_array_end(j);
	json_object_end(j);
}

static int answer_curves(const struct server_request *rq, struct store_metric_query *q,
			 struct server_answer *a, struct err *err)
{
	_cleanup_(query_metrics_release) struct query_metrics m = {0};
	struct json j = json_to(&a->body);
	struct query_grouping grouping;
	struct server_steps steps;
	int r = server_api_steps(rq, &steps, err);

	if (r < 0)
		return r;
	q->metric = rq->params.text[SERVER_PARAM_METRIC];
	q->step_ns = steps.step_ns;
	q->n_points = steps.n;
	parse_grouping(&rq->params, &grouping);
	r = query_metrics(rq->context->store, q, &grouping, &m, err);
	if (r < 0)
		return r;
	if (!m.answer.known)
		return err_set(err, -ENOENT,
			       "service '%.100s' has no stored metric '%.100s'; for a list, "
			       "request /api/metrics without metric",
			       q->service, q->metric);
	write_curves(&j, rq, q, &m, grouping.apart);
	return server_api_finish(&j, err);
}

/* --- the list */

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct values of one attribute in a run of series of one metric. */
static int write_values(struct json *j, const struct store_series *s, size_t n, const char *key)
{
	_cleanup_free_ const char **values = calloc(n + 1, sizeof(*values));
	size_t len = 0;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < s[i].n_attributes; k++)
			if (strcmp(s[i].attributes[k].key, key) == 0)
				values[len++] = s[i].attributes[k].value;
	qsort(values, len, sizeof(*values), compare_texts);
	json_object_begin(j);
	server_answer_text(j, "key", key);
	json_key(j, "values");
	json_array_begin(j);
	for (size_t i = 0; i < len; i++)
		if (i == 0 || strcmp(values[i], values[i - 1]) != 0)
			json_cstring(j, values[i]);
	json_array_end(j);
	json_object_end(j);
	return 0;
}

/* Each key of a run once: most series have them all. */
static int write_attributes(struct json *j, const struct store_series *s, size_t n)
{
	const char *keys[METRIC_MAX_ATTRIBUTES] = {0};
	size_t n_keys = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < s[i].n_attributes; k++) {
			size_t known = 0;

			while (known < n_keys && strcmp(keys[known], s[i].attributes[k].key) != 0)
				known++;
			if (known == n_keys && n_keys < METRIC_MAX_ATTRIBUTES)
				keys[n_keys++] = s[i].attributes[k].key;
		}
	json_key(j, "attributes");
	json_array_begin(j);
	for (size_t i = 0; r == 0 && i < n_keys; i++)
		r = write_values(j, s, n, keys[i]);
	json_array_end(j);
	return r;
}

static int write_metric(struct json *j, const struct store_series *s, size_t n)
{
	int64_t first = s[0].first_ns, last = s[0].last_ns;
	int r;

	for (size_t i = 1; i < n; i++) {
		first = MIN(first, s[i].first_ns);
		last = MAX(last, s[i].last_ns);
	}
	json_object_begin(j);
	server_answer_text(j, "metric", s[0].metric);
	server_answer_text(j, "kind", kind_name(s[0].kind));
	server_answer_text(j, "unit", s[0].unit);
	r = write_attributes(j, s, n);
	server_answer_uint(j, "series", n);
	server_answer_time(j, "first", first);
	server_answer_time(j, "last", last);
	json_object_end(j);
	return r;
}

static bool is_same_metric(const struct store_series *a, const struct store_series *b)
{
	return a->kind == b->kind && strcmp(a->metric, b->metric) == 0 &&
	       strcmp(a->unit, b->unit) == 0;
}

static int answer_list(const struct server_request *rq, const struct store_metric_query *q,
		       struct server_answer *a, struct err *err)
{
	_cleanup_(store_metric_answer_release) struct store_metric_answer found = {0};
	struct json j = json_to(&a->body);
	int r = store_metrics(rq->context->store, q, &found, err);

	if (r == 0 && !found.known)
		r = server_api_find_service(rq, err);
	if (r < 0)
		return r;
	json_object_begin(&j);
	server_answer_window(&j, rq->params.from_ns, rq->params.to_ns);
	server_answer_damaged(&j, *q->damaged);
	json_key(&j, "metrics");
	json_array_begin(&j);
	for (size_t i = 0, n; r == 0 && i < found.len; i += n) {
		for (n = 1; i + n < found.len; n++)
			if (!is_same_metric(&found.series[i], &found.series[i + n]))
				break;
		r = write_metric(&j, &found.series[i], n);
	}
	json_array_end(&j);
	json_object_end(&j);
	return r < 0 ? err_oom(err) : server_api_finish(&j, err);
}

int server_api_stored_metrics(const struct server_request *rq, struct server_answer *a,
			      struct err *err)
{
	const struct server_params *p = &rq->params;
	uint64_t damaged = 0;
	struct store_metric_query q = {
		.service = p->text[SERVER_PARAM_SERVICE],
		.from_ns = p->from_ns,
		.to_ns = p->to_ns,
		.filters = p->labels,
		.n_filters = p->n_labels,
		.damaged = &damaged,
	};
	int r = parse_aggregate(p, &q.aggregate, err);

	if (r < 0)
		return r;
	return p->text[SERVER_PARAM_METRIC] ? answer_curves(rq, &q, a, err)
					    : answer_list(rq, &q, a, err);
}
