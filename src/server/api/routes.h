/* src/server/api/routes.h: maps paths to handlers and their parameters. */
#pragma once

#include <stdbool.h>

#include "agent/agent.h"
#include "features/features.h"
#include "query/covered.h"
#include "server/api/answer.h"
#include "server/api/params.h"
#include "server/api/steps.h"
#include "store/store.h"

/* Context of every handler. */
struct server_context {
	struct agent *agent; /* NULL: only the store is served */
	struct store *store;
	uint64_t interval_ns; /* 0 if unknown */
	int64_t started_ns;
	unsigned int cpus; /* of the machine */
	uint64_t memory_kib;
	struct server_known *known; /* services that clients have been told of; NULL: none */
};

struct server_request {
	const struct server_context *context;
	int64_t now_ns;
	struct server_params params;
};

struct server_route {
	const char *path;
	struct server_param_rules rules;
	bool heavy; /* heavy on the store: limited concurrency */
	/* Fills the response; 0, or -errno with a message. */
	int (*handle)(const struct server_request *rq, struct server_answer *a, struct err *err);
};

/* NULL if the path is not part of the API. */
const struct server_route *server_routes_find(const char *path);
/* Returns -ENOENT with a message that lists the paths. */
int server_routes_unknown(const char *path, struct err *err);

int server_api_health(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_targets(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_types(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_services(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_overview(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_labels(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_series(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_flame(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_top(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_function(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_function_series(const struct server_request *rq, struct server_answer *a,
			       struct err *err);
int server_api_function_source(const struct server_request *rq, struct server_answer *a,
			       struct err *err);
int server_api_pprof(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_events(const struct server_request *rq, struct server_answer *a, struct err *err);
int server_api_stored_metrics(const struct server_request *rq, struct server_answer *a,
			      struct err *err);
int server_api_metrics(const struct server_request *rq, struct server_answer *a, struct err *err);

/* The features, including the store. False if there is no agent. */
bool server_api_features(const struct server_context *context, struct features *ret_features);
/* The steps that step_ms asks for, or round ones. -EINVAL: too many. */
int server_api_steps(const struct server_request *rq, struct server_steps *ret_steps,
		     struct err *err);
/* "unit" and "mode" of a type. */
void server_api_kind(struct json *j, const char *unit, bool snapshot);
const char *server_api_unit(const char *type);
/* A window without data still has a mode: the stream's over all time. -ENOENT: never stored. */
int server_api_find_mode(const struct server_request *rq, bool *ret_snapshot, struct err *err);
void server_api_points(struct json *j, const char *key, const double *points, size_t n);
/* The numbers of points that are not as they were measured. */
void server_api_spread(struct json *j, const struct query_covered *covered, const char *type,
		       bool snapshot);
/* A window may have no data of a service; -ENOENT if the service was never stored. */
int server_api_find_service(const struct server_request *rq, struct err *err);
/* The result of json_finish() as our error. */
int server_api_finish(const struct json *j, struct err *err);
