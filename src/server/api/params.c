/* src/server/api/params.c: see params.h. */
#include "server/api/params.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "query/query.h"

#define HOUR_NS ((int64_t)3600 * (int64_t)NS_PER_SEC)
#define MAX_WINDOW_NS ((int64_t)SERVER_PARAMS_MAX_WINDOW_DAYS * 24 * HOUR_NS)

enum param_kind { KIND_TEXT, KIND_TIME, KIND_LABEL, KIND_NUMBER };

static const struct {
	const char *name;
	enum param_kind kind;
	uint64_t min; /* of a number; of a text, max is its length */
	uint64_t max;
	uint64_t usual; /* the default */
} params_table[SERVER_PARAM_N] = {
	[SERVER_PARAM_SERVICE] = {"service", KIND_TEXT, 1, 255, 0},
	[SERVER_PARAM_TYPE] = {"type", KIND_TEXT, 1, 127, 0},
	[SERVER_PARAM_FROM] = {"from", KIND_TIME, 0, 0, 0},
	[SERVER_PARAM_TO] = {"to", KIND_TIME, 0, 0, 0},
	[SERVER_PARAM_LABEL] = {"label", KIND_LABEL, 0, 0, 0},
	[SERVER_PARAM_BEFORE_FROM] = {"before_from", KIND_TIME, 0, 0, 0},
	[SERVER_PARAM_BEFORE_TO] = {"before_to", KIND_TIME, 0, 0, 0},
	[SERVER_PARAM_POINTS] = {"points", KIND_NUMBER, 1, 500, 60},
	[SERVER_PARAM_STEP_MS] = {"step_ms", KIND_NUMBER, 1000, 40ULL * 86400 * 1000, 0},
	[SERVER_PARAM_MAX_NODES] = {"max_nodes", KIND_NUMBER, QUERY_MIN_NODES, 250000, 20000},
	[SERVER_PARAM_LIMIT] = {"limit", KIND_NUMBER, 1, 100000, 500},
	[SERVER_PARAM_METRIC] = {"metric", KIND_TEXT, 1, 127, 0},
	[SERVER_PARAM_GROUP] = {"group", KIND_TEXT, 1, 127, 0},
	[SERVER_PARAM_AGGREGATE] = {"aggregate", KIND_TEXT, 1, 15, 0},
	[SERVER_PARAM_SINCE] = {"since", KIND_NUMBER, 0, 9000000000000ULL, 0},
	[SERVER_PARAM_NAME] = {"name", KIND_TEXT, 1, 4000, 0},
	[SERVER_PARAM_FILE] = {"file", KIND_TEXT, 1, 4000, 0},
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %41 and '+' in place. False for invalid escapes and control bytes. */
static bool decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int c = (unsigned char)*from;

		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);

			if (low < 0)
				return false;
			c = high << 4 | low;
			from += 2;
		}
		if (c < 0x20 || c == 0x7f)
			return false;
		*to++ = (char)c;
	}
	*to = '\0';
	return true;
}

static int parse_number(enum server_param param, const char *value, uint64_t *ret_number,
			struct err *err)
{
	uint64_t min = params_table[param].min, max = params_table[param].max;
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end || errno || n < min || n > max)
		return err_set(err, -EINVAL,
			       "%s must be a whole number from %" PRIu64 " to %" PRIu64,
			       params_table[param].name, min, max);
	*ret_number = n;
	return 0;
}

static int parse_text(enum server_param param, const char *value, const char **ret_text,
		      struct err *err)
{
	if (!*value || strlen(value) > params_table[param].max)
		return err_set(err, -EINVAL, "%s must have 1 to %" PRIu64 " bytes",
			       params_table[param].name, params_table[param].max);
	*ret_text = value;
	return 0;
}

static int parse_label(struct server_params *p, char *value, struct err *err)
{
	char *equals = strchr(value, '=');

	if (!equals || equals == value)
		return err_set(err, -EINVAL,
			       "label must be key=value, for example label=process.pid=1234");
	if (p->n_labels == SERVER_PARAMS_MAX_LABELS)
		return err_set(err, -EINVAL, "at most %d labels are allowed",
			       SERVER_PARAMS_MAX_LABELS);
	*equals = '\0';
	p->labels[p->n_labels++] = (struct label){.key = value, .value = equals + 1};
	return 0;
}

static int parse_type(struct server_params *p, const char *value, struct err *err)
{
	int r;

	if (p->n_types == SERVER_PARAMS_MAX_TYPES)
		return err_set(err, -EINVAL, "at most %d types are allowed",
			       SERVER_PARAMS_MAX_TYPES);
	r = parse_text(SERVER_PARAM_TYPE, value, &p->types[p->n_types], err);
	if (r < 0)
		return r;
	p->n_types++;
	p->text[SERVER_PARAM_TYPE] = p->types[0];
	return 0;
}

static int parse_group(struct server_params *p, const char *value, struct err *err)
{
	int r;

	if (p->n_groups == SERVER_PARAMS_MAX_GROUPS)
		return err_set(err, -EINVAL, "at most %d group keys are allowed",
			       SERVER_PARAMS_MAX_GROUPS);
	r = parse_text(SERVER_PARAM_GROUP, value, &p->groups[p->n_groups], err);
	p->n_groups += r == 0;
	return r;
}

static int64_t *params_time(struct server_params *p, enum server_param param)
{
	switch (param) {
	case SERVER_PARAM_FROM:
		return &p->from_ns;
	case SERVER_PARAM_TO:
		return &p->to_ns;
	case SERVER_PARAM_BEFORE_FROM:
		return &p->before_from_ns;
	default:
		return &p->before_to_ns;
	}
}

static int parse_value(struct server_params *p, enum server_param param, char *value,
		       int64_t now_ns, struct err *err)
{
	int r;

	switch (params_table[param].kind) {
	case KIND_TEXT:
		if (param == SERVER_PARAM_TYPE)
			return parse_type(p, value, err);
		if (param == SERVER_PARAM_GROUP)
			return parse_group(p, value, err);
		return parse_text(param, value, &p->text[param], err);
	case KIND_TIME:
		r = query_parse_time(value, now_ns, params_time(p, param), err);
		return r < 0 ? err_prefix(err, r, "%s", params_table[param].name) : 0;
	case KIND_LABEL:
		return parse_label(p, value, err);
	default:
		return parse_number(param, value, &p->number[param], err);
	}
}

static int find_param(const struct server_param_rules *rules, const char *name,
		      enum server_param *ret_param, struct err *err)
{
	char known[256] = "";
	size_t len = 0;

	for (enum server_param i = 0; i < SERVER_PARAM_N; i++) {
		if (!(rules->allowed & SERVER_PARAM_BIT(i)))
			continue;
		if (strcmp(params_table[i].name, name) == 0) {
			*ret_param = i;
			return 0;
		}
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "",
					params_table[i].name);
	}
	if (!len)
		return err_set(err, -EINVAL, "unknown parameter '%.40s' (this path has none)",
			       name);
	return err_set(err, -EINVAL, "unknown parameter '%.40s' (expected: %s)", name, known);
}

static int parse_pair(const struct server_param_rules *rules, struct server_params *p, char *pair,
		      int64_t now_ns, struct err *err)
{
	char *equals = strchr(pair, '=');
	enum server_param param = SERVER_PARAM_N;
	int r;

	if (equals)
		*equals = '\0';
	if (!decode(pair) || (equals && !decode(equals + 1)))
		return err_set(err, -EINVAL,
			       "malformed parameters: '%%' needs two hexadecimal digits, and "
			       "control characters are not allowed");
	r = find_param(rules, pair, &param, err);
	if (r < 0)
		return r;
	if (!equals)
		return err_set(err, -EINVAL, "%s needs a value", params_table[param].name);
	if (p->given & SERVER_PARAM_BIT(param) && params_table[param].kind != KIND_LABEL &&
	    param != SERVER_PARAM_GROUP && !(param == SERVER_PARAM_TYPE && rules->several_types))
		return err_set(err, -EINVAL, "%s is given twice", params_table[param].name);
	p->given |= SERVER_PARAM_BIT(param);
	return parse_value(p, param, equals + 1, now_ns, err);
}

static int check_window(const char *name, int64_t from_ns, int64_t to_ns, struct err *err)
{
	if (from_ns >= to_ns)
		return err_set(err, -EINVAL,
			       "%s ends before it starts; from must be earlier than to", name);
	if (to_ns - from_ns > MAX_WINDOW_NS)
		return err_set(err, -EINVAL, "%s is longer than %d days; use a shorter one", name,
			       SERVER_PARAMS_MAX_WINDOW_DAYS);
	return 0;
}

static int check_windows(struct server_params *p, int64_t now_ns, struct err *err)
{
	uint32_t both = SERVER_PARAM_BIT(SERVER_PARAM_BEFORE_FROM) |
			SERVER_PARAM_BIT(SERVER_PARAM_BEFORE_TO);
	int r;

	if (!(p->given & SERVER_PARAM_BIT(SERVER_PARAM_TO)))
		p->to_ns = now_ns;
	if (!(p->given & SERVER_PARAM_BIT(SERVER_PARAM_FROM)))
		p->from_ns = MAX(p->to_ns - HOUR_NS, 0);
	r = check_window("the window", p->from_ns, p->to_ns, err);
	if (r < 0 || !(p->given & both))
		return r;
	if ((p->given & both) != both)
		return err_set(err, -EINVAL, "before_from and before_to must be given together");
	p->has_before = true;
	return check_window("the other window", p->before_from_ns, p->before_to_ns, err);
}

static int check_required(const struct server_param_rules *rules, const struct server_params *p,
			  struct err *err)
{
	for (enum server_param i = 0; i < SERVER_PARAM_N; i++)
		if (rules->required & ~p->given & SERVER_PARAM_BIT(i))
			return err_set(err, -EINVAL, "missing parameter %s", params_table[i].name);
	return 0;
}

int server_params_parse(const struct server_param_rules *rules, const char *query, int64_t now_ns,
			struct server_params *ret_params, struct err *err)
{
	struct server_params *p = ret_params;
	char *rest, *pair;
	int r = 0;

	*p = (struct server_params){0};
	for (enum server_param i = 0; i < SERVER_PARAM_N; i++)
		p->number[i] = params_table[i].usual;
	if (strlen(query) > SERVER_PARAMS_MAX_QUERY)
		return err_set(err, -EINVAL, "the parameters are longer than %d bytes",
			       SERVER_PARAMS_MAX_QUERY);
	memcpy(p->memory, query, strlen(query) + 1);
	rest = p->memory;
	while (r == 0 && (pair = strsep(&rest, "&")))
		if (*pair)
			r = parse_pair(rules, p, pair, now_ns, err);
	if (r == 0)
		r = check_required(rules, p, err);
	return r < 0 ? r : check_windows(p, now_ns, err);
}

struct store_window server_params_window(const struct server_params *p)
{
	return (struct store_window){
		.service = p->text[SERVER_PARAM_SERVICE],
		.type = p->text[SERVER_PARAM_TYPE],
		.from_ns = p->from_ns,
		.to_ns = p->to_ns,
		.filters = p->labels,
		.n_filters = p->n_labels,
		.stands = true,
	};
}

struct store_window server_params_before(const struct server_params *p)
{
	struct store_window w = server_params_window(p);

	w.from_ns = p->before_from_ns;
	w.to_ns = p->before_to_ns;
	return w;
}
