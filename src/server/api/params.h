/*
 * src/server/api/params.h: parses and checks all request parameters in one place.
 *
 * Unknown, repeated, absurd or malformed parameters are refused with a message: a typo must not
 * look like a result.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

#define PARAMS_MAX_QUERY 8192
#define PARAMS_MAX_LABELS 16
#define PARAMS_MAX_TYPES 16
#define PARAMS_MAX_GROUPS 8
#define PARAMS_MAX_WINDOW_DAYS 40

enum param {
	PARAM_SERVICE,
	PARAM_TYPE,
	PARAM_FROM,
	PARAM_TO,
	PARAM_LABEL,
	PARAM_BEFORE_FROM,
	PARAM_BEFORE_TO,
	PARAM_POINTS,
	PARAM_STEP_MS,
	PARAM_MAX_NODES,
	PARAM_LIMIT,
	PARAM_METRIC,
	PARAM_GROUP,
	PARAM_AGGREGATE,
	PARAM_N,
};

#define PARAM_BIT(p) (1U << (p))

/* The parameters of a route, as bits; label and group may be repeated. */
struct param_rules {
	uint32_t allowed;
	uint32_t required;
	bool several_types; /* type as well */
};

struct params {
	uint32_t given;		   /* bits */
	const char *text[PARAM_N]; /* service, type, metric and aggregate */
	uint64_t number[PARAM_N];  /* points, step_ms, max_nodes, limit; defaults filled in */
	int64_t from_ns;	   /* defaults filled in */
	int64_t to_ns;
	int64_t before_from_ns;
	int64_t before_to_ns;
	bool has_before;
	struct store_label labels[PARAMS_MAX_LABELS];
	size_t n_labels;
	const char *types[PARAMS_MAX_TYPES]; /* all of them; the first is text[PARAM_TYPE] */
	size_t n_types;
	const char *groups[PARAMS_MAX_GROUPS]; /* keys; "*": every series separately */
	size_t n_groups;
	char memory[PARAMS_MAX_QUERY + 1]; /* storage of the texts */
};

/* query is the part after '?', or "". -EINVAL with a message. Do not move ret_params. */
int params_parse(const struct param_rules *rules, const char *query, int64_t now_ns,
		 struct params *ret_params, struct err *err);

/* The windows that the parameters describe; borrowed from them. */
struct store_window params_window(const struct params *p);
struct store_window params_before(const struct params *p);
