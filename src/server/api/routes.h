/* src/server/api/routes.h: maps paths to handlers and their parameters. */
#pragma once

#include <stdbool.h>

#include "agent/agent.h"
#include "features/features.h"
#include "server/api/answer.h"
#include "server/api/params.h"
#include "server/api/steps.h"
#include "store/store.h"

/* Context of every handler. */
struct context {
	struct agent *agent; /* NULL: only the store is served */
	struct store *store;
	uint64_t interval_ns; /* 0 when unknown */
	int64_t started_ns;
};

struct request {
	const struct context *context;
	int64_t now_ns;
	struct params params;
};

struct route {
	const char *path;
	struct param_rules rules;
	bool heavy; /* heavy on the store: limited concurrency */
	/* Fills the response; 0, or -errno with a message. */
	int (*handle)(const struct request *rq, struct answer *a, struct err *err);
};

/* NULL if the path is not part of the API. */
const struct route *routes_find(const char *path);
/* Returns -ENOENT with a message that lists the paths. */
int routes_unknown(const char *path, struct err *err);

int api_health(const struct request *rq, struct answer *a, struct err *err);
int api_targets(const struct request *rq, struct answer *a, struct err *err);
int api_types(const struct request *rq, struct answer *a, struct err *err);
int api_services(const struct request *rq, struct answer *a, struct err *err);
int api_labels(const struct request *rq, struct answer *a, struct err *err);
int api_series(const struct request *rq, struct answer *a, struct err *err);
int api_flame(const struct request *rq, struct answer *a, struct err *err);
int api_top(const struct request *rq, struct answer *a, struct err *err);
int api_pprof(const struct request *rq, struct answer *a, struct err *err);
int api_events(const struct request *rq, struct answer *a, struct err *err);
int api_stored_metrics(const struct request *rq, struct answer *a, struct err *err);
int api_metrics(const struct request *rq, struct answer *a, struct err *err);

/* The features, including the store. False if there is no agent. */
bool api_features(const struct context *context, struct features *ret_features);
/* The steps that step_ms asks for, or round ones. -EINVAL: too many. */
int api_steps(const struct request *rq, struct steps *ret_steps, struct err *err);
/* A window may have no data of a service; -ENOENT if the service was never stored. */
int api_find_service(const struct request *rq, struct err *err);
/* The result of json_finish() as our error. */
int api_finish(const struct json *j, struct err *err);
