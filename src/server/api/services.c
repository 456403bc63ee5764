/* src/server/api/services.c: what is in the store: /api/services and /api/labels. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "query/covered.h"
#include "server/api/routes.h"
#include "server/api/steps.h"

struct services {
	const struct server_request *rq;
	struct server_steps steps;
	struct query_covered covered;
	double *points;
	struct json j;
};

static const char *mode_name(bool snapshot)
{
	return snapshot ? "snapshot" : "delta";
}

/* Sum or average over the whole window; NAN without data. */
static int stream_value(const struct services *s, const struct store_window *w, bool snapshot,
			double *ret_value, struct err *err)
{
	double value = NAN;

	/* Averages of steps do not average to that of the window; ask the store. */
	if (snapshot) {
		int r = store_series(s->rq->context->store, w, w->to_ns - w->from_ns, &value, 1,
				     err);

		if (r < 0)
			return r;
	} else {
		for (size_t i = 0; i < s->steps.n; i++)
			if (!isnan(s->points[i]))
				value = isnan(value) ? s->points[i] : value + s->points[i];
	}
	*ret_value = value;
	return 0;
}

static int services_stream(struct services *s, const struct store_stream *stream, struct err *err)
{
	struct store_window w = server_params_window(&s->rq->params);
	struct json *j = &s->j;
	uint64_t damaged = 0;
	double value = NAN;
	int r;

	w.service = stream->service;
	w.type = stream->type;
	w.damaged = &damaged;
	for (size_t i = 0; i < s->steps.n; i++)
		s->points[i] = NAN;
	r = store_series(s->rq->context->store, &w, s->steps.step_ns, s->points, s->steps.n, err);
	/* The value is of the same pieces. */
	w.damaged = NULL;
	if (r == 0)
		r = stream_value(s, &w, stream->snapshot, &value, err);
	if (r < 0)
		return r;
	query_covered_fill(&s->covered, stream->type, s->points);
	json_object_begin(j);
	server_answer_text(j, "type", stream->type);
	server_answer_text(j, "mode", mode_name(stream->snapshot));
	server_answer_time(j, "first", stream->first_ns);
	server_answer_time(j, "last", stream->last_ns);
	server_answer_double(j, "value", value);
	json_key(j, "series");
	json_array_begin(j);
	for (size_t i = 0; i < s->steps.n; i++)
		json_double(j, s->points[i]);
	json_array_end(j);
	server_answer_damaged(j, damaged);
	json_object_end(j);
	return 0;
}

/* An event (/api/events) is not a process of its own. */
static bool labelset_is_event(const struct store_labelset *set)
{
	for (size_t i = 0; i < set->n_labels; i++)
		if (strcmp(set->labels[i].key, "oom.killed") == 0)
			return true;
	return false;
}

static size_t count_processes(const struct store_labelset *sets, size_t n)
{
	size_t processes = 0;

	for (size_t i = 0; i < n; i++)
		processes += !labelset_is_event(&sets[i]);
	return processes;
}

/* No types means all; "*:name:unit" matches any family. */
static bool type_is_wanted(const struct server_params *p, const char *type)
{
	const char *kind = strchr(type, ':');

	for (size_t i = 0; i < p->n_types; i++) {
		if (strcmp(p->types[i], type) == 0)
			return true;
		if (kind && p->types[i][0] == '*' && strcmp(p->types[i] + 1, kind) == 0)
			return true;
	}
	return p->n_types == 0;
}

/* A service is a run of streams; its label sets are its processes. */
static int services_service(struct services *s, const struct store_stream *streams, size_t n,
			    struct err *err)
{
	const struct server_params *p = &s->rq->params;
	_cleanup_free_ struct store_labelset *sets = NULL;
	size_t n_sets = 0;
	int r = store_labelsets(s->rq->context->store, streams[0].service, p->from_ns, p->to_ns,
				&sets, &n_sets, err);

	if (r < 0)
		return r;
	json_object_begin(&s->j);
	server_answer_text(&s->j, "service", streams[0].service);
	json_key(&s->j, "types");
	json_array_begin(&s->j);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (type_is_wanted(p, streams[i].type))
			r = services_stream(s, &streams[i], err);
	json_array_end(&s->j);
	server_answer_uint(&s->j, "processes", count_processes(sets, n_sets));
	json_object_end(&s->j);
	return r;
}

static int services_all(struct services *s, const struct store_stream *streams, size_t len,
			struct err *err)
{
	const char *only = s->rq->params.text[SERVER_PARAM_SERVICE];
	int r = 0;

	for (size_t i = 0, n; r == 0 && i < len; i += n) {
		for (n = 1; i + n < len; n++)
			if (strcmp(streams[i].service, streams[i + n].service) != 0)
				break;
		if (!only || strcmp(streams[i].service, only) == 0)
			r = services_service(s, &streams[i], n, err);
	}
	return r;
}

int server_api_services(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	const struct server_params *p = &rq->params;
	_cleanup_free_ struct store_stream *streams = NULL;
	_cleanup_free_ double *points = NULL;
	struct services s = {.rq = rq, .j = json_to(&a->body)};
	int64_t step = (p->to_ns - p->from_ns) / (int64_t)p->number[SERVER_PARAM_POINTS];
	size_t len = 0;
	int r = store_streams(rq->context->store, p->from_ns, p->to_ns, &streams, &len, err);

	if (r < 0)
		return r;
	/* Whole milliseconds, as in the response. */
	step = MAX(step, (int64_t)rq->context->interval_ns);
	step = (step + (int64_t)NS_PER_MS - 1) / (int64_t)NS_PER_MS * (int64_t)NS_PER_MS;
	s.steps = server_steps_of(p->from_ns, p->to_ns, step);
	points = calloc(s.steps.n, sizeof(*points));
	if (!points)
		return err_oom(err);
	s.points = points;
	r = query_covered_read(rq->context->store, p->from_ns, p->to_ns, s.steps.step_ns, s.steps.n,
			       &s.covered, err);
	if (r < 0)
		return r;
	json_object_begin(&s.j);
	server_answer_window(&s.j, p->from_ns, p->to_ns);
	server_answer_uint(&s.j, "step_ms", (uint64_t)s.steps.step_ns / NS_PER_MS);
	json_key(&s.j, "services");
	json_array_begin(&s.j);
	r = services_all(&s, streams, len, err);
	json_array_end(&s.j);
	json_object_end(&s.j);
	query_covered_release(&s.covered);
	return r < 0 ? r : server_api_finish(&s.j, err);
}

struct label_row {
	const char *key;
	const char *value;
	int64_t first_ns;
	int64_t last_ns;
};

static int compare_labels(const void *a, const void *b)
{
	const struct label_row *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : strcmp(x->value, y->value);
}

/* Removes duplicate pairs; returns how many remain. */
static size_t merge_labels(struct label_row *rows, size_t n)
{
	size_t len = 0;

	if (n > 0)
		qsort(rows, n, sizeof(*rows), compare_labels);
	for (size_t i = 0; i < n; i++) {
		if (len > 0 && compare_labels(&rows[len - 1], &rows[i]) == 0) {
			rows[len - 1].first_ns = MIN(rows[len - 1].first_ns, rows[i].first_ns);
			rows[len - 1].last_ns = MAX(rows[len - 1].last_ns, rows[i].last_ns);
		} else {
			rows[len++] = rows[i];
		}
	}
	return len;
}

static void write_labels(struct json *j, const struct label_row *rows, size_t n)
{
	json_key(j, "labels");
	json_array_begin(j);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(rows[i].key, rows[i - 1].key) != 0) {
			json_object_begin(j);
			server_answer_text(j, "key", rows[i].key);
			json_key(j, "values");
			json_array_begin(j);
		}
		json_object_begin(j);
		json_key(j, "value");
		json_cstring(j, rows[i].value);
		server_answer_time(j, "first", rows[i].first_ns);
		server_answer_time(j, "last", rows[i].last_ns);
		json_object_end(j);
		if (i + 1 == n || strcmp(rows[i].key, rows[i + 1].key) != 0) {
			json_array_end(j);
			json_object_end(j);
		}
	}
	json_array_end(j);
}

int server_api_find_service(const struct server_request *rq, struct err *err)
{
	_cleanup_free_ struct store_stream *streams = NULL;
	const char *service = rq->params.text[SERVER_PARAM_SERVICE];
	size_t len = 0;
	int r = store_streams(rq->context->store, 0, INT64_MAX, &streams, &len, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < len; i++)
		if (strcmp(streams[i].service, service) == 0)
			return 0;
	return err_set(err, -ENOENT, "no stored profiles of service '%.100s'; see /api/services",
		       service);
}

int server_api_labels(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	const struct server_params *p = &rq->params;
	_cleanup_free_ struct store_labelset *sets = NULL;
	_cleanup_free_ struct label_row *rows = NULL;
	struct json j = json_to(&a->body);
	size_t n_sets = 0, n = 0;
	int r = store_labelsets(rq->context->store, p->text[SERVER_PARAM_SERVICE], p->from_ns,
				p->to_ns, &sets, &n_sets, err);

	if (r == 0 && n_sets == 0)
		r = server_api_find_service(rq, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_sets; i++)
		n += sets[i].n_labels;
	rows = calloc(n + 1, sizeof(*rows));
	if (!rows)
		return err_oom(err);
	n = 0;
	for (size_t i = 0; i < n_sets; i++)
		for (size_t k = 0; k < sets[i].n_labels; k++)
			rows[n++] =
				(struct label_row){sets[i].labels[k].key, sets[i].labels[k].value,
						   sets[i].first_ns, sets[i].last_ns};
	json_object_begin(&j);
	write_labels(&j, rows, merge_labels(rows, n));
	json_object_end(&j);
	return server_api_finish(&j, err);
}
