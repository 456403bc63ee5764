/* tests/unit/cli/test_options.c: command lines become values, and slips get a useful answer. */
#include "cli/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

enum { OPT_TYPE, OPT_OUTPUT, OPT_ALL, OPT_WIDE };

static const struct cli_option options[] = {
	[OPT_TYPE] = {.letter = 't', .name = "type", .arg = "TYPE", .help = "which"},
	[OPT_OUTPUT] = {.letter = 'o', .name = "output", .arg = "FILE", .help = "where"},
	[OPT_ALL] = {.letter = 'a', .name = "all", .help = "everything"},
	[OPT_WIDE] = {.letter = 'w', .name = "wide", .help = "wide"},
};

static const struct cli_command command = {
	.name = "probe",
	.summary = "Try the parser",
	.operands = "FILE",
	.min_operands = 1,
	.max_operands = 2,
	.options = options,
	.n_options = ARRAY_SIZE(options),
};

static int parse(struct cli_args *args, struct err *err, const char *const *words)
{
	int n = 0;

	while (words[n])
		n++;
	return cli_args_parse(&command, n, (char *const *)words, args, err);
}

#define PARSE(args, err, ...) parse(args, err, (const char *const[]){__VA_ARGS__, NULL})

static void values_are_accepted_in_every_form(void **state)
{
	static const char *const forms[][3] = {
		{"--type=x", NULL}, {"--type", "x", NULL}, {"-t", "x", NULL}, {"-tx", NULL}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct cli_args args;
		struct err err = {};
		const char *words[] = {"file", forms[i][0], forms[i][1], NULL};

		assert_int_equal(parse(&args, &err, words), 0);
		assert_string_equal(args.values[OPT_TYPE], "x");
		assert_null(args.values[OPT_ALL]);
		assert_string_equal(args.operands[0], "file");
		assert_int_equal(args.n_operands, 1);
	}
}

static void switches_can_be_bundled(void **state)
{
	struct cli_args args;
	struct err err = {};

	(void)state;
	assert_int_equal(PARSE(&args, &err, "-awtx", "file"), 0);
	assert_non_null(args.values[OPT_ALL]);
	assert_non_null(args.values[OPT_WIDE]);
	assert_string_equal(args.values[OPT_TYPE], "x");
}

static void a_lone_dash_and_words_after_two_dashes_are_operands(void **state)
{
	struct cli_args args;
	struct err err = {};

	(void)state;
	assert_int_equal(PARSE(&args, &err, "-", "--", "--type"), 0);
	assert_int_equal(args.n_operands, 2);
	assert_string_equal(args.operands[0], "-");
	assert_string_equal(args.operands[1], "--type");
}

static void an_unknown_option_brings_a_proposal(void **state)
{
	struct cli_args args;
	struct err err = {};

	(void)state;
	assert_int_equal(PARSE(&args, &err, "--tpye", "x"), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean --type?"));
	assert_int_equal(PARSE(&args, &err, "--zzzzzz"), -EINVAL);
	assert_null(strstr(err.text, "did you mean"));
	assert_int_equal(PARSE(&args, &err, "-z"), -EINVAL);
}

static void near_names_come_best_first_and_once(void **state)
{
	static const char *const services[] = {"api",	      "checkout",     "checkout",
					       "checkout-db", "my-Checkout1", "chekcout",
					       "payments",    "checkout-web"};
	struct cli_suggestions s = {};
	char text[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		cli_suggestions_offer(&s, "chckout", services[i]);
	assert_string_equal(cli_suggestions_text(&s, text, sizeof(text)),
			    "'checkout' or 'chekcout'");
	s = (struct cli_suggestions){};
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		cli_suggestions_offer(&s, "CHECKOUT", services[i]);
	assert_string_equal(cli_suggestions_text(&s, text, sizeof(text)),
			    "'checkout', 'checkout-db', 'checkout-web' or 'my-Checkout1'");
	assert_string_equal(cli_suggestions_text(&s, text, 12), "'checkout',");
	s = (struct cli_suggestions){};
	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		cli_suggestions_offer(&s, "nosuch", services[i]);
	assert_int_equal(s.len, 0);
}

static void a_long_name_may_have_more_typos(void **state)
{
	const char *name = "accounting-reconciliation-worker-eu-west-1";
	struct cli_suggestions s = {};

	(void)state;
	cli_suggestions_offer(&s, "acounting-reconcilation-worker-eu-wset-1", name);
	assert_int_equal(s.len, 1);
}

static void wrong_use_of_options_is_refused(void **state)
{
	struct cli_args args;
	struct err err = {};

	(void)state;
	assert_int_equal(PARSE(&args, &err, "file", "--type"), -EINVAL);
	assert_int_equal(PARSE(&args, &err, "file", "-t"), -EINVAL);
	assert_int_equal(PARSE(&args, &err, "file", "--all=yes"), -EINVAL);
	assert_int_equal(PARSE(&args, &err, "a", "b", "c"), -EINVAL);
	assert_int_equal(PARSE(&args, &err, "--all"), -EINVAL);
}

static void help_needs_no_operands(void **state)
{
	struct cli_args args;
	struct err err = {};

	(void)state;
	assert_int_equal(PARSE(&args, &err, "--help"), 0);
	assert_true(args.help);
	assert_int_equal(PARSE(&args, &err, "-h"), 0);
	assert_true(args.help);
}

static void usage_names_every_option(void **state)
{
	_cleanup_(buf_release) struct buf text = {};

	(void)state;
	assert_int_equal(cli_usage(&command, &text), 0);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		assert_non_null(strstr(buf_cstr(&text), options[i].name));
		assert_non_null(strstr(buf_cstr(&text), options[i].help));
	}
}

static void long_help_is_wrapped_below_itself(void **state)
{
	static const struct cli_option wordy[] = {
		{.name = "size",
		 .arg = "N",
		 .help = "a help of many words that does not fit into the eighty columns of a "
			 "terminal"},
		{.name = "an-option-that-is-long-itself", .arg = "VALUE", .help = "what it does"},
	};
	const struct cli_command talkative = {.name = "c",
					      .summary = "Talk",
					      .operands = "",
					      .options = wordy,
					      .n_options = ARRAY_SIZE(wordy)};
	_cleanup_(buf_release) struct buf text = {};

	(void)state;
	assert_int_equal(cli_usage(&talkative, &text), 0);
	assert_non_null(
		strstr(buf_cstr(&text),
		       "      --size N                   a help of many words that does not "
		       "fit into the\n"
		       "                                 eighty columns of a terminal\n"
		       "      --an-option-that-is-long-itself VALUE\n"
		       "                                 what it does\n"));
}

static void numbers_must_be_whole_and_in_range(void **state)
{
	static const char *const bad[] = {
		"", "0", "-1", "1.5", "12x", " 1", "101", "+3", "99999999999999999999"};
	struct err err = {};
	uint64_t n = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(cli_parse_number("N", bad[i], 100, &n, &err), -EINVAL);
		assert_int_equal(n, 7);
	}
	assert_int_equal(cli_parse_number("N", "100", 100, &n, &err), 0);
	assert_int_equal(n, 100);
}

static void durations_must_not_be_nothing(void **state)
{
	struct err err = {};
	uint64_t ns;

	(void)state;
	assert_int_equal(cli_parse_duration("--diff", "0s", &ns, &err), -EINVAL);
	assert_int_equal(cli_parse_duration("--diff", "soon", &ns, &err), -EINVAL);
	assert_int_equal(cli_parse_duration("--diff", "500ms", &ns, &err), 0);
	assert_int_equal(ns, 500000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_accepted_in_every_form),
		cmocka_unit_test(switches_can_be_bundled),
		cmocka_unit_test(a_lone_dash_and_words_after_two_dashes_are_operands),
		cmocka_unit_test(an_unknown_option_brings_a_proposal),
		cmocka_unit_test(near_names_come_best_first_and_once),
		cmocka_unit_test(a_long_name_may_have_more_typos),
		cmocka_unit_test(wrong_use_of_options_is_refused),
		cmocka_unit_test(help_needs_no_operands),
		cmocka_unit_test(usage_names_every_option),
		cmocka_unit_test(long_help_is_wrapped_below_itself),
		cmocka_unit_test(numbers_must_be_whole_and_in_range),
		cmocka_unit_test(durations_must_not_be_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
