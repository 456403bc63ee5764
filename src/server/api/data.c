/* src/server/api/data.c: profile data: /api/series, /api/flame, /api/top, /api/pprof. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "profile/pprof.h"
#include "query/covered.h"
#include "query/query.h"
#include "server/api/routes.h"
#include "server/api/steps.h"

void server_api_kind(struct json *j, const char *unit, bool snapshot)
{
	json_key(j, "unit");
	json_cstring(j, unit);
	server_answer_text(j, "mode", snapshot ? "snapshot" : "delta");
}

/* The mode of a stream over all time; -ENOENT if it was never stored. */
static int stream_mode(const struct store_stream *streams, size_t len, const char *service,
		       const char *type, bool *ret_snapshot)
{
	for (size_t i = 0; i < len; i++)
		if (strcmp(streams[i].service, service) == 0 &&
		    strcmp(streams[i].type, type) == 0) {
			*ret_snapshot = streams[i].snapshot;
			return 0;
		}
	return -ENOENT;
}

static int never_stored(const struct server_request *rq, struct err *err)
{
	return err_set(
		err, -ENOENT,
		"no stored profiles of service '%.100s' and type '%.100s'; see /api/services",
		rq->params.text[SERVER_PARAM_SERVICE], rq->params.text[SERVER_PARAM_TYPE]);
}

int server_api_find_mode(const struct server_request *rq, bool *ret_snapshot, struct err *err)
{
	_cleanup_free_ struct store_stream *streams = NULL;
	size_t len = 0;
	int r = store_streams(rq->context->store, 0, INT64_MAX, &streams, &len, err);

	if (r < 0)
		return r;
	r = stream_mode(streams, len, rq->params.text[SERVER_PARAM_SERVICE],
			rq->params.text[SERVER_PARAM_TYPE], ret_snapshot);
	return r < 0 ? never_stored(rq, err) : 0;
}

const char *server_api_unit(const char *type)
{
	const char *colon = strrchr(type, ':');

	return colon ? colon + 1 : "";
}

struct series {
	const struct server_request *rq;
	struct server_steps steps;
	struct query_covered covered;
	double *points;
	struct json j;
};

void server_api_spread(struct json *j, const struct query_covered *covered, const char *type,
		       bool snapshot)
{
	json_key(j, "spread");
	json_array_begin(j);
	for (size_t i = 0; !snapshot && i < covered->n; i++)
		if (query_covered_is_spread(covered, type, i))
			json_uint(j, i);
	json_array_end(j);
}

void server_api_points(struct json *j, const char *key, const double *points, size_t n)
{
	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; i < n; i++)
		json_double(j, points[i]);
	json_array_end(j);
}

/* Writes unit, mode and points of one type into the open object. */
static int series_write(struct series *s, const char *type, bool snapshot, struct err *err)
{
	struct store_window w = server_params_window(&s->rq->params);
	uint64_t damaged = 0;
	int r;

	w.type = type;
	w.damaged = &damaged;
	for (size_t i = 0; i < s->steps.n; i++)
		s->points[i] = NAN;
	r = store_series(s->rq->context->store, &w, s->steps.step_ns, s->points, s->steps.n, err);
	if (r < 0)
		return r;
	query_covered_fill(&s->covered, type, s->points);
	server_api_kind(&s->j, server_api_unit(type), snapshot);
	server_api_points(&s->j, "points", s->points, s->steps.n);
	server_api_spread(&s->j, &s->covered, type, snapshot);
	server_answer_damaged(&s->j, damaged);
	return 0;
}

/* Only types that were ever stored: not every process has all of them. */
static int series_several(struct series *s, const struct store_stream *streams, size_t len,
			  struct err *err)
{
	const struct server_params *p = &s->rq->params;
	size_t found = 0;
	int r = 0;

	json_key(&s->j, "series");
	json_array_begin(&s->j);
	for (size_t i = 0; r == 0 && i < p->n_types; i++) {
		bool snapshot = false;

		if (stream_mode(streams, len, p->text[SERVER_PARAM_SERVICE], p->types[i],
				&snapshot) < 0)
			continue;
		found++;
		json_object_begin(&s->j);
		server_answer_text(&s->j, "type", p->types[i]);
		r = series_write(s, p->types[i], snapshot, err);
		json_object_end(&s->j);
	}
	json_array_end(&s->j);
	return r < 0 || found > 0 ? r : never_stored(s->rq, err);
}

static int series_one(struct series *s, const struct store_stream *streams, size_t len,
		      struct err *err)
{
	const struct server_params *p = &s->rq->params;
	const char *type = p->text[SERVER_PARAM_TYPE];
	bool snapshot = false;

	if (stream_mode(streams, len, p->text[SERVER_PARAM_SERVICE], type, &snapshot) < 0)
		return never_stored(s->rq, err);
	return series_write(s, type, snapshot, err);
}

int server_api_series(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	_cleanup_free_ struct store_stream *streams = NULL;
	struct series s = {.rq = rq, .j = json_to(&a->body)};
	_cleanup_free_ double *points = NULL;
	size_t len = 0;
	int r = server_api_steps(rq, &s.steps, err);

	if (r == 0)
		r = store_streams(rq->context->store, 0, INT64_MAX, &streams, &len, err);
	if (r < 0)
		return r;
	s.points = points = calloc(s.steps.n, sizeof(*points));
	if (!points)
		return err_oom(err);
	r = query_covered_read(rq->context->store, rq->params.from_ns, rq->params.to_ns,
			       s.steps.step_ns, s.steps.n, &s.covered, err);
	if (r < 0)
		return r;
	json_object_begin(&s.j);
	server_answer_window(&s.j, rq->params.from_ns, rq->params.to_ns);
	server_answer_uint(&s.j, "step_ms", (uint64_t)s.steps.step_ns / NS_PER_MS);
	r = rq->params.n_types > 1 ? series_several(&s, streams, len, err)
				   : series_one(&s, streams, len, err);
	json_object_end(&s.j);
	query_covered_release(&s.covered);
	return r < 0 ? r : server_api_finish(&s.j, err);
}

static void flame_names(struct json *j, const char *key, char *const *names, size_t n)
{
	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; i < n; i++)
		json_cstring(j, names[i]);
	json_array_end(j);
}

static void write_variants(struct json *j, const char *key, const char *variants)
{
	json_key(j, key);
	json_array_begin(j);
	for (; *variants; variants += strlen(variants) + 1)
		json_cstring(j, variants);
	json_array_end(j);
}

/* Few names have any. */
static void flame_variants(struct json *j, const struct query_flame *f)
{
	bool has_any = false;

	for (size_t i = 0; i < f->n_names; i++) {
		if (!f->variants[i][0])
			continue;
		if (!has_any) {
			json_key(j, "variants");
			json_array_begin(j);
		}
		has_any = true;
		json_object_begin(j);
		server_answer_uint(j, "name", i);
		write_variants(j, "suffixes", f->variants[i]);
		json_object_end(j);
	}
	if (has_any)
		json_array_end(j);
}

static void flame_origins(struct json *j, const struct query_flame *f)
{
	json_key(j, "origins");
	json_array_begin(j);
	for (size_t i = 0; i < f->n_origins; i++) {
		json_object_begin(j);
		server_answer_text(j, "kind", query_kind_name(f->origins[i].kind));
		json_key(j, "module");
		json_cstring(j, f->origins[i].module);
		json_object_end(j);
	}
	json_array_end(j);
	json_key(j, "origin");
	json_array_begin(j);
	for (size_t i = 0; i < f->n_names; i++)
		json_uint(j, f->origin[i]);
	json_array_end(j);
}

/* One column: a member of all nodes. Whole numbers and floats are distinguished by size. */
static void flame_column(struct json *j, const char *key, const struct query_flame *f,
			 size_t offset, bool whole)
{
	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; i < f->n_nodes; i++) {
		const char *member = (const char *)&f->nodes[i] + offset;

		if (whole)
			json_uint(j, *(const uint32_t *)(const void *)member);
		else
			json_double(j, *(const double *)(const void *)member);
	}
	json_array_end(j);
}

static void flame_write(struct json *j, const struct server_request *rq,
			const struct query_flame *f, uint64_t damaged)
{
	json_object_begin(j);
	server_api_kind(j, f->about.unit, f->about.snapshot);
	server_answer_window(j, rq->params.from_ns, rq->params.to_ns);
	server_answer_double(j, "total", f->total);
	if (rq->params.has_before)
		server_answer_double(j, "before_total", f->before_total);
	server_answer_double(j, "folded", f->folded);
	server_answer_uint(j, "collections", f->about.collections);
	server_answer_double(j, "other", f->about.other);
	server_answer_damaged(j, damaged);
	flame_names(j, "names", f->names, f->n_names);
	flame_names(j, "files", f->files, f->n_names);
	flame_variants(j, f);
	flame_origins(j, f);
	flame_column(j, "name", f, offsetof(struct query_node, name), true);
	flame_column(j, "depth", f, offsetof(struct query_node, depth), true);
	flame_column(j, "self", f, offsetof(struct query_node, self), false);
	flame_column(j, "total_of", f, offsetof(struct query_node, total), false);
	if (rq->params.has_before) {
		flame_column(j, "before_self", f, offsetof(struct query_node, before_self), false);
		flame_column(j, "before_total_of", f, offsetof(struct query_node, before_total),
			     false);
	}
	json_object_end(j);
}

int server_api_flame(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	struct store_window w = server_params_window(&rq->params),
			    before = server_params_before(&rq->params);
	const struct query_flame_request request = {
		.window = &w,
		.before = rq->params.has_before ? &before : NULL,
		.group = rq->params.n_groups ? rq->params.groups[0] : NULL,
		.max_nodes = rq->params.number[SERVER_PARAM_MAX_NODES],
	};
	_cleanup_(query_flame_release) struct query_flame flame = {0};
	struct json j = json_to(&a->body);
	uint64_t damaged = 0;
	int r;

	if (rq->params.n_groups > 1)
		return err_set(err, -EINVAL, "a flame graph has at most one group");
	w.damaged = before.damaged = &damaged;
	r = query_flame(rq->context->store, &request, &flame, err);
	if (r == 0 && flame.about.collections == 0)
		r = server_api_find_mode(rq, &flame.about.snapshot, err);
	if (r < 0)
		return r;
	flame_write(&j, rq, &flame, damaged);
	return server_api_finish(&j, err);
}

static void top_row(struct json *j, const struct query_row *row, bool has_before)
{
	json_object_begin(j);
	json_key(j, "name");
	json_cstring(j, row->name);
	json_key(j, "file");
	json_cstring(j, row->file);
	if (row->variants[0])
		write_variants(j, "variants", row->variants);
	server_answer_double(j, "self", row->self);
	server_answer_double(j, "total", row->total);
	if (has_before) {
		server_answer_double(j, "before_self", row->before_self);
		server_answer_double(j, "before_total", row->before_total);
	}
	json_object_end(j);
}

int server_api_top(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	struct store_window w = server_params_window(&rq->params),
			    before = server_params_before(&rq->params);
	_cleanup_(query_top_release) struct query_top top = {0};
	bool has_before = rq->params.has_before;
	struct json j = json_to(&a->body);
	uint64_t damaged = 0;
	int r;

	w.damaged = before.damaged = &damaged;
	r = query_top(rq->context->store, &w, has_before ? &before : NULL, &top, err);
	if (r == 0 && top.about.collections == 0)
		r = server_api_find_mode(rq, &top.about.snapshot, err);
	if (r < 0)
		return r;
	json_object_begin(&j);
	server_api_kind(&j, top.about.unit, top.about.snapshot);
	server_answer_double(&j, "total", top.total);
	if (has_before)
		server_answer_double(&j, "before_total", top.before_total);
	server_answer_uint(&j, "functions", top.len);
	server_answer_damaged(&j, damaged);
	json_key(&j, "rows");
	json_array_begin(&j);
	for (size_t i = 0; i < MIN(top.len, rq->params.number[SERVER_PARAM_LIMIT]); i++)
		top_row(&j, &top.rows[i], has_before);
	json_array_end(&j);
	json_object_end(&j);
	return server_api_finish(&j, err);
}

/* "shop-inuse_space-20261115T120300Z.pb.gz"; service names may contain anything. */
static void pprof_name(const struct store_window *w, char *dst, size_t size)
{
	const char *colon = strchr(w->type, ':');
	time_t from = (time_t)(w->from_ns / (int64_t)NS_PER_SEC);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&from, &tm))
		(void)strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	(void)snprintf(dst, size, "%.100s-%.*s-%s.pb.gz", w->service,
		       colon ? (int)MIN(strcspn(colon + 1, ":"), (size_t)60) : 0,
		       colon ? colon + 1 : "", when);
	for (; *dst; dst++)
		if (!isalnum((unsigned char)*dst) && !strchr("-_.", *dst))
			*dst = '_';
}

int server_api_pprof(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	struct store_window w = server_params_window(&rq->params);
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct store_sum about = {0};
	bool snapshot;
	int r = query_profile(rq->context->store, &w, &p, &about, err);

	if (r == 0 && about.collections == 0)
		r = server_api_find_mode(rq, &snapshot, err);
	if (r == 0)
		r = profile_encode_pprof(p, &a->body, err);
	if (r < 0)
		return r;
	a->type = "application/octet-stream";
	pprof_name(&w, a->file_name, sizeof(a->file_name));
	return 0;
}
