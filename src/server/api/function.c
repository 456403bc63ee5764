/* src/server/api/function.c: one function: /api/function, /api/function/series. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "query/covered.h"
#include "query/query.h"
#include "server/api/routes.h"
#include "server/api/steps.h"

static struct store_function function_of(const struct server_request *rq)
{
	return (struct store_function){.name = rq->params.text[SERVER_PARAM_NAME],
				       .file = rq->params.text[SERVER_PARAM_FILE]};
}

static void write_total(struct json *j, double total, double before_total, bool has_before)
{
	server_answer_double(j, "total", total);
	if (has_before)
		server_answer_double(j, "before_total", before_total);
}

static void write_self(struct json *j, double self, double before_self, bool has_before)
{
	server_answer_double(j, "self", self);
	if (has_before)
		server_answer_double(j, "before_self", before_self);
}

static void write_lines(struct json *j, const struct server_request *rq,
			const struct query_function *f)
{
	bool has_before = rq->params.has_before;

	json_key(j, "lines");
	json_array_begin(j);
	for (size_t i = 0; i < MIN(f->n_lines, rq->params.number[SERVER_PARAM_LIMIT]); i++) {
		const struct query_line *l = &f->lines[i];

		json_object_begin(j);
		json_key(j, "file");
		json_cstring(j, l->file);
		json_key(j, "line");
		/* A forged day may have negative ones: unknown. */
		json_uint(j, l->line > 0 ? (uint64_t)l->line : 0);
		write_self(j, l->self, l->before_self, has_before);
		write_total(j, l->total, l->before_total, has_before);
		json_object_end(j);
	}
	json_array_end(j);
}

static void write_neighbours(struct json *j, const struct server_request *rq, const char *key,
			     const struct query_neighbour *all, size_t n)
{
	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; i < MIN(n, rq->params.number[SERVER_PARAM_LIMIT]); i++) {
		json_object_begin(j);
		json_key(j, "name");
		json_cstring(j, all[i].name);
		write_total(j, all[i].total, all[i].before_total, rq->params.has_before);
		json_object_end(j);
	}
	json_array_end(j);
}

static void write_function(struct json *j, const struct server_request *rq,
			   const struct query_function *f, uint64_t damaged)
{
	bool has_before = rq->params.has_before;

	json_object_begin(j);
	server_api_kind(j, f->about.unit, f->about.snapshot);
	server_answer_window(j, rq->params.from_ns, rq->params.to_ns);
	json_key(j, "name");
	json_cstring(j, rq->params.text[SERVER_PARAM_NAME]);
	json_key(j, "file");
	json_cstring(j, f->file);
	write_self(j, f->self, f->before_self, has_before);
	write_total(j, f->total, f->before_total, has_before);
	server_answer_double(j, "window_total", f->window_total);
	if (has_before)
		server_answer_double(j, "before_window_total", f->window_before_total);
	server_answer_uint(j, "n_lines", f->n_lines);
	server_answer_uint(j, "n_callers", f->n_callers);
	server_answer_uint(j, "n_callees", f->n_callees);
	server_answer_damaged(j, damaged);
	write_lines(j, rq, f);
	write_neighbours(j, rq, "callers", f->callers, f->n_callers);
	write_neighbours(j, rq, "callees", f->callees, f->n_callees);
	json_object_end(j);
}

int server_api_function(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	struct store_window w = server_params_window(&rq->params),
			    before = server_params_before(&rq->params);
	const struct store_function function = function_of(rq);
	_cleanup_(query_function_release) struct query_function f = {0};
	struct json j = json_to(&a->body);
	uint64_t damaged = 0;
	int r;

	w.damaged = before.damaged = &damaged;
	r = query_function(rq->context->store, &w, rq->params.has_before ? &before : NULL,
			   &function, &f, err);
	if (r == 0 && f.about.collections == 0)
		r = server_api_find_mode(rq, &f.about.snapshot, err);
	if (r < 0)
		return r;
	write_function(&j, rq, &f, damaged);
	return server_api_finish(&j, err);
}

/* What was not collected, and what is known to be none, as in any series. */
static int fill(const struct server_request *rq, const struct store_curve *curve,
		struct query_covered *ret_covered, struct err *err)
{
	const char *type = rq->params.text[SERVER_PARAM_TYPE];
	int r = query_covered_read(rq->context->store, rq->params.from_ns, rq->params.to_ns,
				   curve->step_ns, curve->n, ret_covered, err);

	if (r < 0)
		return r;
	query_covered_fill(ret_covered, type, curve->self);
	query_covered_fill(ret_covered, type, curve->total);
	for (size_t i = 0; i < curve->n; i++)
		if (curve->unread[i])
			curve->self[i] = curve->total[i] = NAN;
	return 0;
}

static int write_curve(const struct server_request *rq, const struct store_curve *curve,
		       struct json *j, struct err *err)
{
	const char *type = rq->params.text[SERVER_PARAM_TYPE];
	struct store_window w = server_params_window(&rq->params);
	const struct store_function function = function_of(rq);
	_cleanup_(query_covered_release) struct query_covered covered = {0};
	uint64_t damaged = 0;
	bool snapshot = false;
	int r = server_api_find_mode(rq, &snapshot, err);

	w.damaged = &damaged;
	if (r == 0)
		r = store_curve(rq->context->store, &w, &function, curve, err);
	if (r == 0)
		r = fill(rq, curve, &covered, err);
	if (r < 0)
		return r;
	json_object_begin(j);
	server_answer_window(j, rq->params.from_ns, rq->params.to_ns);
	server_answer_uint(j, "step_ms", (uint64_t)curve->step_ns / NS_PER_MS);
	server_api_kind(j, server_api_unit(type), snapshot);
	server_api_points(j, "self", curve->self, curve->n);
	server_api_points(j, "total", curve->total, curve->n);
	server_api_spread(j, &covered, type, snapshot);
	server_answer_damaged(j, damaged);
	json_object_end(j);
	return server_api_finish(j, err);
}

/* A metric is a number without a stack. */
static int check_stacks(const char *type, struct err *err)
{
	for (size_t i = 0; i < METRICS; i++)
		if (registry_metrics[i].stream && strcmp(registry_metrics[i].stream, type) == 0)
			return err_set(err, -EINVAL, "'%s' has no stacks; use /api/series", type);
	return 0;
}

int server_api_function_series(const struct server_request *rq, struct server_answer *a,
			       struct err *err)
{
	_cleanup_free_ double *points = NULL;
	_cleanup_free_ uint8_t *unread = NULL;
	struct server_steps steps;
	struct json j = json_to(&a->body);
	int r = server_api_steps(rq, &steps, err);

	if (r == 0)
		r = check_stacks(rq->params.text[SERVER_PARAM_TYPE], err);
	if (r < 0)
		return r;
	points = calloc(2 * steps.n, sizeof(*points));
	unread = calloc(steps.n, sizeof(*unread));
	if (!points || !unread)
		return err_oom(err);
	return write_curve(rq,
			   &(struct store_curve){.step_ns = steps.step_ns,
						 .n = steps.n,
						 .self = points,
						 .total = points + steps.n,
						 .unread = unread},
			   &j, err);
}
