/* tests/unit/server/test_params.c: parameters, the Host and Origin headers, listen addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "server/api/params.h"
#include "server/api/steps.h"
#include "server/host.h"

#define SECOND ((int64_t)1000000000)
#define NOW (1794744000 * SECOND)

static const struct server_param_rules all = {.allowed = (1U << SERVER_PARAM_N) - 1,
					      .required = SERVER_PARAM_BIT(SERVER_PARAM_SERVICE) |
							  SERVER_PARAM_BIT(SERVER_PARAM_TYPE)};

static void good_parameters_are_read(void **state)
{
	struct server_params p;
	struct err err = {};

	(void)state;
	assert_int_equal(
		server_params_parse(
			&all,
			"service=a%20b%2fc+d&type=go_heap:x:bytes&from=-2h&to=now&label=process."
			"pid=12&label=k%3Dv=w&before_from=-4h&before_to=-2h&max_nodes=1000&"
			"limit=7&points=500&step_ms=15000&",
			NOW, &p, &err),
		0);
	assert_string_equal(p.text[SERVER_PARAM_SERVICE], "a b/c d");
	assert_string_equal(p.text[SERVER_PARAM_TYPE], "go_heap:x:bytes");
	assert_int_equal(p.from_ns, NOW - 7200 * SECOND);
	assert_int_equal(p.to_ns, NOW);
	assert_true(p.has_before);
	assert_int_equal(server_params_before(&p).to_ns, NOW - 7200 * SECOND);
	assert_int_equal(p.n_labels, 2);
	assert_string_equal(p.labels[0].key, "process.pid");
	assert_string_equal(p.labels[0].value, "12");
	assert_string_equal(p.labels[1].key, "k");
	assert_string_equal(p.labels[1].value, "v=w");
	assert_int_equal(p.number[SERVER_PARAM_MAX_NODES], 1000);
	assert_int_equal(p.number[SERVER_PARAM_LIMIT], 7);
}

static void defaults_are_the_last_hour(void **state)
{
	struct server_params p;
	struct err err = {};

	(void)state;
	assert_int_equal(server_params_parse(&all, "type=t&service=s", NOW, &p, &err), 0);
	assert_int_equal(p.to_ns, NOW);
	assert_int_equal(p.from_ns, NOW - 3600 * SECOND);
	assert_false(p.has_before);
	assert_int_equal(p.number[SERVER_PARAM_MAX_NODES], 20000);
	assert_int_equal(p.number[SERVER_PARAM_POINTS], 60);
}

static void wrong_parameters_are_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *query;
		const char *sentence;
	} cases[] = {
		{"", "missing parameter service"},
		{"service=s", "missing parameter type"},
		{"service=s&type=t&serivce=x",
		 "unknown parameter 'serivce' (expected: service, type, "},
		{"service=s&type=t&service=s", "given twice"},
		{"service&type=t", "needs a value"},
		{"service=&type=t", "1 to 255 bytes"},
		{"service=%zz&type=t", "malformed"},
		{"service=%4&type=t", "malformed"},
		{"service=%&type=t", "malformed"},
		{"service=%00x&type=t", "malformed"},
		{"service=a%0ab&type=t", "malformed"},
		{"service=s&type=t&max_nodes=0", "whole number from 8 to 250000"},
		{"service=s&type=t&max_nodes=250001", "whole number"},
		{"service=s&type=t&max_nodes=-1", "whole number"},
		{"service=s&type=t&max_nodes=+9", "whole number"},
		{"service=s&type=t&max_nodes=9x", "whole number"},
		{"service=s&type=t&limit=99999999999999999999999", "whole number"},
		{"service=s&type=t&points=501", "whole number from 1 to 500"},
		{"service=s&type=t&step_ms=1", "whole number"},
		{"service=s&type=t&from=tomorrow", "from: 'tomorrow' is not a time"},
		{"service=s&type=t&from=now&to=-1h", "ends before it starts"},
		{"service=s&type=t&from=now&to=now", "ends before it starts"},
		{"service=s&type=t&from=0", "longer than 40 days"},
		{"service=s&type=t&before_from=-2h", "must be given together"},
		{"service=s&type=t&before_from=-1h&before_to=-2h", "the other window ends before"},
		{"service=s&type=t&label=x", "label must be key=value"},
		{"service=s&type=t&label==x", "label must be key=value"},
		{"service=s&type=t&label=a=&label=a=&label=a=&label=a=&label=a=&label=a=&label=a=&"
		 "label=a=&label=a=&label=a=&label=a=&label=a=&label=a=&label=a=&label=a=&label=a=&"
		 "label=a=",
		 "at most 16 labels"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct server_params p;
		struct err err = {};

		if (server_params_parse(&all, cases[i].query, NOW, &p, &err) != -EINVAL)
			fail_msg("'%s' is accepted", cases[i].query);
		if (!strstr(err.text, cases[i].sentence))
			fail_msg("'%s' gives: %s", cases[i].query, err.text);
	}
}

static void several_types_are_read_where_the_path_has_them(void **state)
{
	struct server_param_rules several = all;
	char query[512] = "service=a";
	struct server_params p;
	struct err err = {};

	(void)state;
	several.several_types = true;
	assert_int_equal(
		server_params_parse(&several, "service=a&type=b:c:d&type=e", NOW, &p, &err), 0);
	assert_int_equal(p.n_types, 2);
	assert_string_equal(p.types[1], "e");
	assert_string_equal(p.text[SERVER_PARAM_TYPE], "b:c:d");
	assert_int_equal(server_params_parse(&several, "service=a&type=b&type=", NOW, &p, &err),
			 -EINVAL);
	for (size_t i = 0; i <= SERVER_PARAMS_MAX_TYPES; i++)
		strcat(query, "&type=b");
	assert_int_equal(server_params_parse(&several, query, NOW, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "at most 16 types"));
	assert_int_equal(server_params_parse(&all, "service=a&type=b&type=c", NOW, &p, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "given twice"));
}

static void long_queries_are_refused(void **state)
{
	static char query[SERVER_PARAMS_MAX_QUERY + 2];
	struct server_params p;
	struct err err = {};

	(void)state;
	memset(query, '&', sizeof(query) - 1);
	assert_int_equal(server_params_parse(&all, query, NOW, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "longer than"));
}

static void a_path_without_parameters_says_so(void **state)
{
	static const struct server_param_rules none = {0};
	struct server_params p;
	struct err err = {};

	(void)state;
	assert_int_equal(server_params_parse(&none, "from=-1h", NOW, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "this path has none"));
}

static void only_our_own_names_are_hosts(void **state)
{
	struct server_host h;
	struct err err = {};
	static const char *const good[] = {"localhost:7780", "LOCALHOST:7780", "127.0.0.1:7780",
					   "[::1]:7780",     "localhost",      "127.0.0.9:7780"};
	static const char *const bad[] = {"",
					  "evil.example:7780",
					  "localhost.evil.example:7780",
					  "127.0.0.1:80",
					  "127.0.0.1:",
					  "127.0.0.1:7780x",
					  "127.0.0.1.nip.io",
					  "[::2]:7780",
					  "192.168.1.1:7780",
					  "localhost:77800"};

	(void)state;
	assert_int_equal(server_host_parse("127.0.0.9:7780", &h, &err), 0);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(server_host_matches(&h, good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (server_host_matches(&h, bad[i]))
			fail_msg("'%s' is accepted", bad[i]);
	assert_true(server_host_is_origin(&h, "http://localhost:7780"));
	assert_false(server_host_is_origin(&h, "https://localhost:7780"));
	assert_false(server_host_is_origin(&h, "null"));
	assert_false(server_host_is_origin(&h, "http://evil.example"));
}

static void only_loopback_is_listened_on(void **state)
{
	static const char *const bad[] = {"0.0.0.0:7780",  "[::]:7780",	 "192.168.1.1:80",
					  "example.org:1", "7780",	 ":7780",
					  "127.0.0.1",	   "127.0.0.1:", "127.0.0.1:99999",
					  "[::1:80",	   "[]:80",	 "127.0.0.1:-1"};
	struct server_host h;
	struct err err = {};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (server_host_parse(bad[i], &h, &err) != -EINVAL)
			fail_msg("'%s' is accepted", bad[i]);
	assert_int_equal(server_host_parse("0.0.0.0:7780", &h, &err), -EINVAL);
	assert_non_null(strstr(err.text, "this machine only"));
	assert_int_equal(server_host_parse("localhost:0", &h, &err), 0);
	assert_int_equal(server_host_parse("[::1]:7780", &h, &err), 0);
	assert_int_equal(h.port, 7780);
}

static void steps_are_round_and_never_shorter_than_the_interval(void **state)
{
	struct server_steps s = server_steps_about(0, 3600 * SECOND, 300, (uint64_t)(15 * SECOND));

	(void)state;
	assert_int_equal(s.step_ns, 15 * SECOND);
	assert_int_equal(s.n, 240);
	s = server_steps_about(0, 86400 * SECOND, 300, (uint64_t)(15 * SECOND));
	assert_int_equal(s.step_ns, 300 * SECOND);
	assert_int_equal(s.n, 288);
	s = server_steps_of(0, 10 * SECOND, 3 * SECOND);
	assert_int_equal(s.n, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_parameters_are_read),
		cmocka_unit_test(defaults_are_the_last_hour),
		cmocka_unit_test(wrong_parameters_are_refused_with_a_sentence),
		cmocka_unit_test(several_types_are_read_where_the_path_has_them),
		cmocka_unit_test(long_queries_are_refused),
		cmocka_unit_test(a_path_without_parameters_says_so),
		cmocka_unit_test(only_our_own_names_are_hosts),
		cmocka_unit_test(only_loopback_is_listened_on),
		cmocka_unit_test(steps_are_round_and_never_shorter_than_the_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
