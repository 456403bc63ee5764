/* src/server/api/routes.c: see routes.h. */
#include "server/api/routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WINDOW (PARAM_BIT(PARAM_FROM) | PARAM_BIT(PARAM_TO))
#define STREAM (PARAM_BIT(PARAM_SERVICE) | PARAM_BIT(PARAM_TYPE))
#define DATA (STREAM | WINDOW | PARAM_BIT(PARAM_LABEL))
#define BEFORE (PARAM_BIT(PARAM_BEFORE_FROM) | PARAM_BIT(PARAM_BEFORE_TO))

static const struct route routes[] = {
	{"/api/health", {0}, false, api_health},
	{"/api/types", {0}, false, api_types},
	{"/api/services", {STREAM | WINDOW | PARAM_BIT(PARAM_POINTS), 0, true}, true, api_services},
	{"/api/targets", {0}, false, api_targets},
	{"/api/labels",
	 {PARAM_BIT(PARAM_SERVICE) | WINDOW, PARAM_BIT(PARAM_SERVICE), false},
	 true,
	 api_labels},
	{"/api/series", {DATA | PARAM_BIT(PARAM_STEP_MS), STREAM, true}, true, api_series},
	{"/api/flame",
	 {DATA | BEFORE | PARAM_BIT(PARAM_MAX_NODES), STREAM, false},
	 true,
	 api_flame},
	{"/api/top", {DATA | BEFORE | PARAM_BIT(PARAM_LIMIT), STREAM, false}, true, api_top},
	{"/api/pprof", {DATA, STREAM, false}, true, api_pprof},
	{"/api/events", {WINDOW | PARAM_BIT(PARAM_SERVICE), 0, false}, true, api_events},
	{"/api/metrics",
	 {PARAM_BIT(PARAM_SERVICE) | WINDOW | PARAM_BIT(PARAM_LABEL) | PARAM_BIT(PARAM_METRIC) |
		  PARAM_BIT(PARAM_STEP_MS) | PARAM_BIT(PARAM_GROUP) | PARAM_BIT(PARAM_AGGREGATE),
	  PARAM_BIT(PARAM_SERVICE), false},
	 true,
	 api_stored_metrics},
	{"/metrics", {0}, false, api_metrics},
	{NULL, {0}, false, NULL},
};

const struct route *routes_find(const char *path)
{
	for (const struct route *r = routes; r->path; r++)
		if (strcmp(r->path, path) == 0)
			return r;
	return NULL;
}

int routes_unknown(const char *path, struct err *err)
{
	char known[256] = "";
	size_t len = 0;

	for (const struct route *r = routes; r->path && len < sizeof(known); r++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "",
					r->path);
	return err_set(err, -ENOENT, "unknown path '%.80s' (expected: %s)", path, known);
}

int api_steps(const struct request *rq, struct steps *ret_steps, struct err *err)
{
	const struct params *p = &rq->params;

	if (!(p->given & PARAM_BIT(PARAM_STEP_MS))) {
		*ret_steps =
			steps_about(p->from_ns, p->to_ns, STEPS_USUAL, rq->context->interval_ns);
		return 0;
	}
	*ret_steps =
		steps_of(p->from_ns, p->to_ns, (int64_t)(p->number[PARAM_STEP_MS] * NS_PER_MS));
	if (ret_steps->n > STEPS_MAX)
		return err_set(err, -EINVAL,
			       "the series would have more than %d points; use a larger step_ms",
			       STEPS_MAX);
	return 0;
}

int api_finish(const struct json *j, struct err *err)
{
	int r = json_finish(j);

	if (r == -E2BIG)
		return err_set(err, r,
			       "the response is too large; use a shorter window or fewer nodes");
	return r < 0 ? err_oom(err) : 0;
}
