/* src/server/api/routes.c: see routes.h. */
#include "server/api/routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WINDOW (SERVER_PARAM_BIT(SERVER_PARAM_FROM) | SERVER_PARAM_BIT(SERVER_PARAM_TO))
#define STREAM (SERVER_PARAM_BIT(SERVER_PARAM_SERVICE) | SERVER_PARAM_BIT(SERVER_PARAM_TYPE))
#define DATA (STREAM | WINDOW | SERVER_PARAM_BIT(SERVER_PARAM_LABEL))
#define NAME SERVER_PARAM_BIT(SERVER_PARAM_NAME)
#define FUNCTION (DATA | NAME | SERVER_PARAM_BIT(SERVER_PARAM_FILE))
#define BEFORE                                                                                     \
	(SERVER_PARAM_BIT(SERVER_PARAM_BEFORE_FROM) | SERVER_PARAM_BIT(SERVER_PARAM_BEFORE_TO))

static const struct server_route routes[] = {
	{"/api/health", {0}, false, server_api_health},
	{"/api/types", {0}, false, server_api_types},
	{"/api/services",
	 {STREAM | WINDOW | SERVER_PARAM_BIT(SERVER_PARAM_POINTS), 0, true},
	 true,
	 server_api_services},
	{"/api/overview",
	 {WINDOW | SERVER_PARAM_BIT(SERVER_PARAM_STEP_MS) | SERVER_PARAM_BIT(SERVER_PARAM_SINCE), 0,
	  false},
	 true,
	 server_api_overview},
	{"/api/targets",
	 {SERVER_PARAM_BIT(SERVER_PARAM_SERVICE), 0, false},
	 false,
	 server_api_targets},
	{"/api/labels",
	 {SERVER_PARAM_BIT(SERVER_PARAM_SERVICE) | WINDOW, SERVER_PARAM_BIT(SERVER_PARAM_SERVICE),
	  false},
	 true,
	 server_api_labels},
	{"/api/series",
	 {DATA | SERVER_PARAM_BIT(SERVER_PARAM_STEP_MS), STREAM, true},
	 true,
	 server_api_series},
	{"/api/flame",
	 {DATA | BEFORE | SERVER_PARAM_BIT(SERVER_PARAM_MAX_NODES) |
		  SERVER_PARAM_BIT(SERVER_PARAM_GROUP),
	  STREAM, false},
	 true,
	 server_api_flame},
	{"/api/top",
	 {DATA | BEFORE | SERVER_PARAM_BIT(SERVER_PARAM_LIMIT), STREAM, false},
	 true,
	 server_api_top},
	{"/api/function",
	 {FUNCTION | BEFORE | SERVER_PARAM_BIT(SERVER_PARAM_LIMIT), STREAM | NAME, false},
	 true,
	 server_api_function},
	{"/api/function/series",
	 {FUNCTION | SERVER_PARAM_BIT(SERVER_PARAM_STEP_MS), STREAM | NAME, false},
	 true,
	 server_api_function_series},
	{"/api/function/source",
	 {FUNCTION | BEFORE | SERVER_PARAM_BIT(SERVER_PARAM_LIMIT),
	  STREAM | NAME | SERVER_PARAM_BIT(SERVER_PARAM_FILE), false},
	 true,
	 server_api_function_source},
	{"/api/pprof", {DATA, STREAM, false}, true, server_api_pprof},
	{"/api/events",
	 {WINDOW | SERVER_PARAM_BIT(SERVER_PARAM_SERVICE), 0, false},
	 true,
	 server_api_events},
	{"/api/metrics",
	 {SERVER_PARAM_BIT(SERVER_PARAM_SERVICE) | WINDOW | SERVER_PARAM_BIT(SERVER_PARAM_LABEL) |
		  SERVER_PARAM_BIT(SERVER_PARAM_METRIC) | SERVER_PARAM_BIT(SERVER_PARAM_STEP_MS) |
		  SERVER_PARAM_BIT(SERVER_PARAM_GROUP) | SERVER_PARAM_BIT(SERVER_PARAM_AGGREGATE),
	  SERVER_PARAM_BIT(SERVER_PARAM_SERVICE), false},
	 true,
	 server_api_stored_metrics},
	{"/metrics", {0}, false, server_api_metrics},
	{NULL, {0}, false, NULL},
};

const struct server_route *server_routes_find(const char *path)
{
	for (const struct server_route *r = routes; r->path; r++)
		if (strcmp(r->path, path) == 0)
			return r;
	return NULL;
}

int server_routes_unknown(const char *path, struct err *err)
{
	char known[512] = "";
	size_t len = 0;

	for (const struct server_route *r = routes; r->path && len < sizeof(known); r++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "",
					r->path);
	return err_set(err, -ENOENT, "unknown path '%.80s' (expected: %s)", path, known);
}

int server_api_steps(const struct server_request *rq, struct server_steps *ret_steps,
		     struct err *err)
{
	const struct server_params *p = &rq->params;

	if (!(p->given & SERVER_PARAM_BIT(SERVER_PARAM_STEP_MS))) {
		*ret_steps = server_steps_about(p->from_ns, p->to_ns, SERVER_STEPS_USUAL,
						rq->context->interval_ns);
		return 0;
	}
	*ret_steps = server_steps_of(p->from_ns, p->to_ns,
				     (int64_t)(p->number[SERVER_PARAM_STEP_MS] * NS_PER_MS));
	if (ret_steps->n > SERVER_STEPS_MAX)
		return err_set(err, -EINVAL,
			       "the series would have more than %d points; use a larger step_ms",
			       SERVER_STEPS_MAX);
	return 0;
}

int server_api_finish(const struct json *j, struct err *err)
{
	int r = json_finish(j);

	if (r == -E2BIG)
		return err_set(err, r,
			       "the response is too large; use a shorter window or fewer nodes");
	return r < 0 ? err_oom(err) : 0;
}
