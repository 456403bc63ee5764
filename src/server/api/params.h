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

#define SERVER_PARAMS_MAX_QUERY 8192
#define SERVER_PARAMS_MAX_LABELS 16
#define SERVER_PARAMS_MAX_TYPES 16
#define SERVER_PARAMS_MAX_GROUPS 8
#define SERVER_PARAMS_MAX_WINDOW_DAYS 40

enum server_param {
	SERVER_PARAM_SERVICE,
	SERVER_PARAM_TYPE,
	SERVER_PARAM_FROM,
	SERVER_PARAM_TO,
	SERVER_PARAM_LABEL,
	SERVER_PARAM_BEFORE_FROM,
	SERVER_PARAM_BEFORE_TO,
	SERVER_PARAM_POINTS,
	SERVER_PARAM_STEP_MS,
	SERVER_PARAM_MAX_NODES,
	SERVER_PARAM_LIMIT,
	SERVER_PARAM_METRIC,
	SERVER_PARAM_GROUP,
	SERVER_PARAM_AGGREGATE,
	SERVER_PARAM_SINCE,
	SERVER_PARAM_NAME,
	SERVER_PARAM_FILE,
	SERVER_PARAM_N,
};

#define SERVER_PARAM_BIT(p) (1U << (p))

/* The parameters of a route, as bits; label and group may be repeated. */
struct server_param_rules {
	uint32_t allowed;
	uint32_t required;
	bool several_types; /* type as well */
};

struct server_params {
	uint32_t given;			  /* bits */
	const char *text[SERVER_PARAM_N]; /* service, type, metric, name, ... */
	uint64_t number[SERVER_PARAM_N];  /* the others; defaults filled in */
	int64_t from_ns;		  /* defaults filled in */
	int64_t to_ns;
	int64_t before_from_ns;
	int64_t before_to_ns;
	bool has_before;
	struct label labels[SERVER_PARAMS_MAX_LABELS];
	size_t n_labels;
	const char *types[SERVER_PARAMS_MAX_TYPES]; /* all of them; the first is
						       text[SERVER_PARAM_TYPE] */
	size_t n_types;
	const char *groups[SERVER_PARAMS_MAX_GROUPS]; /* keys; "*": every series separately */
	size_t n_groups;
	char memory[SERVER_PARAMS_MAX_QUERY + 1]; /* storage of the texts */
};

/* query is the part after '?', or "". -EINVAL with a message. Do not move ret_params. */
int server_params_parse(const struct server_param_rules *rules, const char *query, int64_t now_ns,
			struct server_params *ret_params, struct err *err);

/* The windows that the parameters describe; borrowed from them. */
struct store_window server_params_window(const struct server_params *p);
struct store_window server_params_before(const struct server_params *p);
