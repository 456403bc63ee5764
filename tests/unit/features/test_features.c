/* tests/unit/features/test_features.c: the table of what works on a machine. */
#include "features/features.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "features/probe.h"

static const struct err no_btf = {
	.text = "the kernel has no BTF", .remedy = "use another", .cause = ERR_CAUSE_NO_BTF};

static void every_feature_and_state_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < FEATURES_N; i++) {
		assert_non_null(features_title(i));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(features_name(i), features_name(k));
	}
	assert_string_equal(features_state_name(FEATURES_LIMITED), "limited");
}

static void a_zeroed_table_has_all_on(void **state)
{
	struct features f = {};

	(void)state;
	for (size_t i = 0; i < FEATURES_N; i++)
		assert_int_equal(f.rows[i].state, FEATURES_ON);
	assert_int_equal(features_missing(&f), 0);
}

static void a_failure_turns_it_off_with_reason_and_remedy_apart(void **state)
{
	struct features f = {};

	(void)state;
	features_set(&f, FEATURES_OOM_KILLS, -ENOTSUP, &no_btf);
	assert_int_equal(f.rows[FEATURES_OOM_KILLS].state, FEATURES_OFF);
	assert_int_equal(f.rows[FEATURES_OOM_KILLS].cause, ERR_CAUSE_NO_BTF);
	assert_string_equal(f.rows[FEATURES_OOM_KILLS].reason, no_btf.text);
	assert_string_equal(f.rows[FEATURES_OOM_KILLS].remedy, no_btf.remedy);
	assert_int_equal(features_missing(&f), 1);
	features_set(&f, FEATURES_OOM_KILLS, 0, &no_btf);
	assert_int_equal(f.rows[FEATURES_OOM_KILLS].state, FEATURES_ON);
	assert_string_equal(f.rows[FEATURES_OOM_KILLS].reason, "");
	assert_int_equal(features_missing(&f), 0);
	/* Without a sentence there is still what the code says. */
	features_set(&f, FEATURES_STORE, -ENOSPC, &(struct err){});
	assert_string_equal(f.rows[FEATURES_STORE].reason, strerror(ENOSPC));
}

static void what_the_user_did_not_ask_for_is_off_but_not_missing(void **state)
{
	struct features f = {};

	(void)state;
	features_disable(&f, FEATURES_JAVA, "not enabled", "start with --java");
	assert_int_equal(f.rows[FEATURES_JAVA].state, FEATURES_OFF);
	assert_false(features_is_missing(&f.rows[FEATURES_JAVA]));
	features_limit(&f, FEATURES_GO, &no_btf);
	assert_true(features_is_missing(&f.rows[FEATURES_GO]));
	assert_int_equal(features_missing(&f), 1);
}

static void python_goes_with_cpu_profiles_and_with_reading_memory(void **state)
{
	struct features f = {};
	const struct features_row *python = &f.rows[FEATURES_PYTHON];

	(void)state;
	features_settle(&f);
	assert_int_equal(python->state, FEATURES_ON);
	features_limit(&f, FEATURES_GO, &no_btf);
	features_settle(&f);
	assert_int_equal(python->state, FEATURES_LIMITED);
	assert_string_equal(python->reason, no_btf.text);
	/* One without a stack to put them in needs no memory. */
	features_set(&f, FEATURES_CPU, -ENOTSUP, &no_btf);
	features_settle(&f);
	assert_int_equal(python->state, FEATURES_OFF);
	assert_int_equal(python->cause, ERR_CAUSE_NEEDS_FEATURE);
	assert_string_equal(python->remedy, no_btf.remedy);
	features_disable(&f, FEATURES_CPU, "--cpu-hz is 0", "leave it out");
	features_settle(&f);
	assert_int_equal(python->cause, ERR_CAUSE_DISABLED);
	assert_false(features_is_missing(python));
}

static void json_has_null_where_there_is_nothing_to_say(void **state)
{
	_cleanup_(buf_release) struct buf out = {};
	struct json j = json_to(&out);
	struct features f = {};
	struct err err = {.text = "an \"odd\" one", .cause = ERR_CAUSE_MACHINE};

	(void)state;
	features_set(&f, FEATURES_OFFCPU, -ENOTSUP, &err);
	features_json(&f, &j);
	assert_int_equal(json_finish(&j), 0);
	assert_non_null(strstr(buf_cstr(&out),
			       "[{\"feature\":\"cpu\",\"title\":\"CPU profiles\",\"state\":\"on\","
			       "\"cause\":null,\"reason\":null,\"remedy\":null},"
			       "{\"feature\":\"off-cpu\",\"title\":\"Off-CPU profiles\","
			       "\"state\":\"off\",\"cause\":\"machine\","
			       "\"reason\":\"an \\\"odd\\\" one\",\"remedy\":null},"));
}

/* What can be had differs by machine; what is not on must say why. */
static void a_probe_gives_a_reason_for_all_that_is_not_on(void **state)
{
	struct features f;

	(void)state;
	features_probe("/nonexistent/folder", &f);
	for (size_t i = 0; i < FEATURES_N; i++) {
		bool is_on = f.rows[i].state == FEATURES_ON;

		assert_int_equal(f.rows[i].reason[0] == 0, is_on);
		assert_true(is_on || f.rows[i].cause != ERR_CAUSE_DISABLED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_feature_and_state_has_a_name_of_its_own),
		cmocka_unit_test(a_zeroed_table_has_all_on),
		cmocka_unit_test(a_failure_turns_it_off_with_reason_and_remedy_apart),
		cmocka_unit_test(what_the_user_did_not_ask_for_is_off_but_not_missing),
		cmocka_unit_test(python_goes_with_cpu_profiles_and_with_reading_memory),
		cmocka_unit_test(json_has_null_where_there_is_nothing_to_say),
		cmocka_unit_test(a_probe_gives_a_reason_for_all_that_is_not_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
