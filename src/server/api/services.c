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

/* Streams whose series are read in one go: a bound on memory. */
#define CHUNK 512

struct services {
	const struct server_request *rq;
	struct server_steps steps;
	struct query_covered covered;
	const struct store_stream *streams;
	size_t len;
	/* Of the streams [first, end): their points, and the value of the window after them. */
	size_t first, end;
	double *points;
	bool is_damaged; /* some of them are: each is read again, to tell which */
	struct store_labelset *sets;
	size_t n_sets;
	size_t at_set;
	struct json j;
};

static void services_release(struct services *s)
{
	query_covered_release(&s->covered);
	free(s->points);
	free(s->sets);
}

static const char *mode_name(bool snapshot)
{
	return snapshot ? "snapshot" : "delta";
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

static bool stream_is_wanted(const struct services *s, const struct store_stream *stream)
{
	const char *only = s->rq->params.text[SERVER_PARAM_SERVICE];

	return (!only || strcmp(stream->service, only) == 0) &&
	       type_is_wanted(&s->rq->params, stream->type);
}

static double *points_of(const struct services *s, size_t i)
{
	return s->points + (i - s->first) * (s->steps.n + 1);
}

/* What to read of one stream: its steps; of a snapshot also its value, which is no sum of them. */
static size_t add_requests(const struct services *s, size_t i, struct store_series_request *to)
{
	const struct store_stream *stream = &s->streams[i];
	const struct server_params *p = &s->rq->params;

	if (!stream_is_wanted(s, stream))
		return 0;
	to[0] = (struct store_series_request){.service = stream->service,
					      .type = stream->type,
					      .step_ns = s->steps.step_ns,
					      .points = points_of(s, i),
					      .n_points = s->steps.n};
	if (!stream->snapshot)
		return 1;
	to[1] = to[0];
	to[1].step_ns = p->to_ns - p->from_ns;
	to[1].points += s->steps.n;
	to[1].n_points = 1;
	return 2;
}

/* Reads the series of the next streams. */
static int read_chunk(struct services *s, size_t first, struct err *err)
{
	_cleanup_free_ struct store_series_request *requests =
		calloc((size_t)2 * CHUNK, sizeof(*requests));
	struct store_window w = server_params_window(&s->rq->params);
	uint64_t damaged = 0;
	size_t n = 0;
	int r;

	if (!requests)
		return err_oom(err);
	s->first = first;
	s->end = MIN(first + CHUNK, s->len);
	for (size_t i = first; i < s->end; i++)
		n += add_requests(s, i, requests + n);
	w.damaged = &damaged;
	r = store_series_many(s->rq->context->store, &w, requests, n, err);
	s->is_damaged = damaged > 0;
	return r;
}

/* Some of the chunk is damaged: is this stream? */
static int read_again(struct services *s, size_t i, uint64_t *ret_damaged, struct err *err)
{
	struct store_window w = server_params_window(&s->rq->params);
	struct store_series_request requests[2];
	size_t n = add_requests(s, i, requests);
	int r;

	w.damaged = ret_damaged;
	r = store_series_many(s->rq->context->store, &w, requests, 1, err);
	/* The value is of the same pieces. */
	w.damaged = NULL;
	return r < 0 || n == 1 ? r
			       : store_series_many(s->rq->context->store, &w, requests + 1, 1, err);
}

/* Sum or average over the whole window; NAN without data. */
static double stream_value(const struct services *s, size_t i)
{
	const double *points = points_of(s, i);
	double value = NAN;

	if (s->streams[i].snapshot)
		return points[s->steps.n];
	for (size_t k = 0; k < s->steps.n; k++)
		if (!isnan(points[k]))
			value = isnan(value) ? points[k] : value + points[k];
	return value;
}

static int services_stream(struct services *s, size_t i, struct err *err)
{
	const struct store_stream *stream = &s->streams[i];
	struct json *j = &s->j;
	uint64_t damaged = 0;
	double *points, value;
	int r = 0;

	if (i >= s->end)
		r = read_chunk(s, i, err);
	if (r == 0 && s->is_damaged)
		r = read_again(s, i, &damaged, err);
	if (r < 0)
		return r;
	points = points_of(s, i);
	value = stream_value(s, i);
	query_covered_fill(&s->covered, stream->type, points);
	json_object_begin(j);
	server_answer_text(j, "type", stream->type);
	server_answer_text(j, "mode", mode_name(stream->snapshot));
	server_answer_time(j, "first", stream->first_ns);
	server_answer_time(j, "last", stream->last_ns);
	server_answer_double(j, "value", value);
	json_key(j, "series");
	json_array_begin(j);
	for (size_t k = 0; k < s->steps.n; k++)
		json_double(j, points[k]);
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

static int compare_sets(const void *va, const void *vb)
{
	const struct store_labelset *a = va, *b = vb;

	return strcmp(a->service, b->service);
}

/* Of a service; services come in the order of the sets. */
static size_t count_processes(struct services *s, const char *service)
{
	size_t processes = 0;

	for (; s->at_set < s->n_sets; s->at_set++) {
		int order = strcmp(s->sets[s->at_set].service, service);

		if (order > 0)
			break;
		processes += order == 0 && !labelset_is_event(&s->sets[s->at_set]);
	}
	return processes;
}

/* A service is a run of streams; its label sets are its processes. */
static int services_service(struct services *s, size_t first, size_t n, struct err *err)
{
	int r = 0;

	json_object_begin(&s->j);
	server_answer_text(&s->j, "service", s->streams[first].service);
	json_key(&s->j, "types");
	json_array_begin(&s->j);
	for (size_t i = first; r == 0 && i < first + n; i++)
		if (stream_is_wanted(s, &s->streams[i]))
			r = services_stream(s, i, err);
	json_array_end(&s->j);
	server_answer_uint(&s->j, "processes", count_processes(s, s->streams[first].service));
	json_object_end(&s->j);
	return r;
}

static int services_all(struct services *s, struct err *err)
{
	const char *only = s->rq->params.text[SERVER_PARAM_SERVICE];
	int r = 0;

	for (size_t i = 0, n; r == 0 && i < s->len; i += n) {
		for (n = 1; i + n < s->len; n++)
			if (strcmp(s->streams[i].service, s->streams[i + n].service) != 0)
				break;
		if (!only || strcmp(s->streams[i].service, only) == 0)
			r = services_service(s, i, n, err);
	}
	return r;
}

static int read_sets(struct services *s, struct err *err)
{
	const struct server_params *p = &s->rq->params;
	int r = store_labelsets(s->rq->context->store, p->text[SERVER_PARAM_SERVICE], p->from_ns,
				p->to_ns, &s->sets, &s->n_sets, err);

	if (r == 0)
		qsort(s->sets, s->n_sets, sizeof(*s->sets), compare_sets);
	return r;
}

int server_api_services(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	const struct server_params *p = &rq->params;
	_cleanup_free_ struct store_stream *streams = NULL;
	_cleanup_(services_release) struct services s = {.rq = rq, .j = json_to(&a->body)};
	int64_t step = (p->to_ns - p->from_ns) / (int64_t)p->number[SERVER_PARAM_POINTS];
	int r = store_streams(rq->context->store, p->from_ns, p->to_ns, &streams, &s.len, err);

	if (r < 0)
		return r;
	/* Whole milliseconds, as in the response. */
	step = MAX(step, (int64_t)rq->context->interval_ns);
	step = (step + (int64_t)NS_PER_MS - 1) / (int64_t)NS_PER_MS * (int64_t)NS_PER_MS;
	s.steps = server_steps_of(p->from_ns, p->to_ns, step);
	s.streams = streams;
	s.points = calloc(CHUNK, (s.steps.n + 1) * sizeof(*s.points));
	if (!s.points)
		return err_oom(err);
	r = read_sets(&s, err);
	if (r == 0)
		r = query_covered_read_times(rq->context->store, p->from_ns, p->to_ns,
					     s.steps.step_ns, s.steps.n, &s.covered, err);
	if (r < 0)
		return r;
	json_object_begin(&s.j);
	server_answer_window(&s.j, p->from_ns, p->to_ns);
	server_answer_uint(&s.j, "step_ms", (uint64_t)s.steps.step_ns / NS_PER_MS);
	json_key(&s.j, "services");
	json_array_begin(&s.j);
	r = services_all(&s, err);
	json_array_end(&s.j);
	json_object_end(&s.j);
	return r < 0 ? r : server_api_finish(&s.j, err);
}

struct label_row {
	const char *key;
	const char *value;
	const char *build_of; /* the executable of a build id; NULL: it is none */
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
		if (rows[i].build_of)
			server_answer_text(j, "build_of", rows[i].build_of);
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

static const char *executable_of(const struct store_labelset *set)
{
	for (size_t i = 0; i < set->n_labels; i++)
		if (strcmp(set->labels[i].key, "process.executable.name") == 0)
			return set->labels[i].value;
	return NULL;
}

/* Builds are told apart from builds of the same executable; a service may run many. */
static size_t list_labels(const struct store_labelset *set, struct label_row *rows)
{
	static const char build_id[] = "process.executable.build_id.";
	const char *executable = executable_of(set);

	for (size_t i = 0; i < set->n_labels; i++) {
		bool is_build = strncmp(set->labels[i].key, build_id, sizeof(build_id) - 1) == 0;

		rows[i] = (struct label_row){.key = set->labels[i].key,
					     .value = set->labels[i].value,
					     .build_of = is_build ? executable : NULL,
					     .first_ns = set->first_ns,
					     .last_ns = set->last_ns};
	}
	return set->n_labels;
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
		n += list_labels(&sets[i], rows + n);
	json_object_begin(&j);
	write_labels(&j, rows, merge_labels(rows, n));
	json_object_end(&j);
	return server_api_finish(&j, err);
}
