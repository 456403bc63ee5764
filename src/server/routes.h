/*
 * src/server/routes.h: which path is answered by which function, with which parameters.
 */
#pragma once

#include <stdbool.h>

#include "agent/agent.h"
#include "features/features.h"
#include "server/answer.h"
#include "server/params.h"
#include "server/steps.h"
#include "store/store.h"

/* What every handler may ask. */
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
	bool heavy; /* reads much of the store: only so many at a time */
	/* Fills the answer, or 0 / -errno with the sentence. */
	int (*handle)(const struct request *rq, struct answer *a, struct err *err);
};

/* NULL when the path is none of the API's. */
const struct route *routes_find(const char *path);
/* -ENOENT, and which paths there are. */
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

/* What works, the store included. False where there is no agent that would know. */
bool api_features(const struct context *context, struct features *ret_features);
/* The steps that step_ms asks for, or round ones. -EINVAL: they would be too many. */
int api_steps(const struct request *rq, struct steps *ret_steps, struct err *err);
/* A window may have nothing of a service; one that was never stored is -ENOENT. */
int api_find_service(const struct request *rq, struct err *err);
/* What json_finish() says, as our error. */
int api_finish(const struct json *j, struct err *err);
