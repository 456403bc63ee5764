/*
 * tests/fuzz/server/fuzz_http.c: any bytes as parameters, a Host, an Origin, a listen address, a
 * time.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "query/query.h"
#include "server/api/params.h"
#include "server/api/steps.h"
#include "server/host.h"

#define NOW ((int64_t)1794744000 * 1000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool inside(const struct server_params *p, const char *text)
{
	return text >= p->memory && text + strlen(text) < p->memory + sizeof(p->memory);
}

static void check_params(const struct server_params *p, const struct server_param_rules *rules)
{
	int64_t longest = (int64_t)SERVER_PARAMS_MAX_WINDOW_DAYS * 86400 * 1000000000;
	struct server_steps s;

	assert((p->given & ~rules->allowed) == 0 && (rules->required & ~p->given) == 0);
	assert(p->from_ns >= 0 && p->from_ns < p->to_ns && p->to_ns - p->from_ns <= longest);
	assert(!p->has_before || (p->before_from_ns < p->before_to_ns));
	assert(p->n_labels <= SERVER_PARAMS_MAX_LABELS);
	for (size_t i = 0; i < p->n_labels; i++)
		assert(inside(p, p->labels[i].key) && inside(p, p->labels[i].value) &&
		       p->labels[i].key[0]);
	for (size_t i = 0; i < SERVER_PARAM_N; i++)
		assert(!p->text[i] || (p->text[i][0] && inside(p, p->text[i])));
	assert(p->number[SERVER_PARAM_MAX_NODES] >= QUERY_MIN_NODES &&
	       p->number[SERVER_PARAM_MAX_NODES] <= 250000);
	s = server_steps_about(p->from_ns, p->to_ns, p->number[SERVER_PARAM_POINTS], 0);
	assert(s.n >= 1 && s.n <= SERVER_STEPS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ struct server_params *p = calloc(1, sizeof(*p));
	_cleanup_free_ char *text = NULL;
	struct server_param_rules rules = {.allowed = (1U << SERVER_PARAM_N) - 1};
	struct err err = {};
	struct server_host h;
	int64_t ns;

	if (size < 1 || !p)
		return 0;
	/* The first byte leaves parameters out, or demands them. */
	if (data[0] & 1)
		rules.allowed &= ~(uint32_t)data[0];
	else
		rules.required = data[0] & SERVER_PARAM_BIT(SERVER_PARAM_TYPE);
	text = strndup((const char *)data + 1, size - 1);
	if (!text)
		return 0;
	if (server_params_parse(&rules, text, NOW, p, &err) == 0)
		check_params(p, &rules);
	else
		assert(err.text[0]);
	err.text[0] = '\0';
	if (query_parse_time(text, NOW, &ns, &err) == 0)
		assert(ns >= 0);
	else
		assert(err.text[0]);
	if (server_host_parse(text, &h, &err) == 0)
		assert(h.addr_len > 0 && h.name[0]);
	assert(server_host_parse("127.0.0.1:7780", &h, &err) == 0);
	assert(!server_host_is_origin(&h, text) || strncasecmp(text, "http://", 7) == 0);
	(void)server_host_matches(&h, text);
	return 0;
}
