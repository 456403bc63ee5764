/* tests/unit/base/test_err.c: error sentences, JSON and durations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

static void err_carries_the_sentence_and_the_code(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(err_set(&err, -ESRCH, "process %d has exited", 5), -ESRCH);
	assert_string_equal(err.text, "process 5 has exited");
	assert_int_equal(err_prefix(&err, -EPERM, "reading %s", "x"), -EPERM);
	assert_string_equal(err.text, "reading x: process 5 has exited");
	assert_int_equal(err_oom(&err), -ENOMEM);
	assert_string_equal(err.text, "out of memory");
	assert_int_equal(err_set(NULL, -EFAULT, "unheard"), -EFAULT);
	assert_int_equal(err_prefix(NULL, -EFAULT, "unheard"), -EFAULT);
}

static void err_keeps_the_remedy_apart_until_there_is_another_sentence(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(
		err_lack(&err, -EPERM, ERR_CAUSE_PRIVILEGE, "run as 100% root", "no %s", "right"),
		-EPERM);
	assert_string_equal(err.text, "no right");
	assert_string_equal(err.remedy, "run as 100% root");
	assert_int_equal(err.cause, ERR_CAUSE_PRIVILEGE);
	assert_int_equal(err_prefix(&err, -EPERM, "here"), -EPERM);
	assert_string_equal(err.remedy, "run as 100% root");
	assert_int_equal(err_set(&err, -EIO, "else"), -EIO);
	assert_string_equal(err.remedy, "");
	assert_int_equal(err.cause, ERR_CAUSE_OTHER);
	assert_int_equal(err_lack(NULL, -EPERM, ERR_CAUSE_DISK, "unheard", "unheard"), -EPERM);
}

static void err_is_passed_on_whole_and_described_in_one_line(void **state)
{
	struct err err = {0}, inner = {0};
	char line[ERR_LINE_MAX];

	(void)state;
	(void)err_lack(&inner, -ENOTSUP, ERR_CAUSE_NOT_GO, "name another", "no %s", "Go");
	assert_int_equal(err_pass(&err, -ENOTSUP, &inner), -ENOTSUP);
	assert_int_equal(err.cause, ERR_CAUSE_NOT_GO);
	assert_string_equal(err_describe(&err, -ENOTSUP, line), "no Go; name another");
	assert_int_equal(err_pass(NULL, -EIO, &inner), -EIO);
	(void)err_set(&err, -EIO, "torn; as ever");
	assert_string_equal(err_describe(&err, -EIO, line), "torn; as ever");
	err = (struct err){0};
	assert_string_equal(err_describe(&err, -ENOENT, line), strerror(ENOENT));
	memset(err.text, 'a', sizeof(err.text) - 1);
	memset(err.remedy, 'b', sizeof(err.remedy) - 1);
	assert_int_equal(strlen(err_describe(&err, 0, line)), 511 + 2 + 255);
}

static void err_has_a_cause_by_what_was_said_or_by_its_code(void **state)
{
	struct err err = {0};

	(void)state;
	for (int i = 0; i < ERR_CAUSE_N; i++) {
		assert_non_null(err_cause_name((enum err_cause)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(err_cause_name((enum err_cause)i),
						err_cause_name((enum err_cause)k));
	}
	assert_int_equal(err_cause_of(-EACCES, &err), ERR_CAUSE_DENIED);
	assert_int_equal(err_cause_of(-ESRCH, &err), ERR_CAUSE_GONE);
	assert_int_equal(err_cause_of(-ENOTSUP, &err), ERR_CAUSE_UNSUPPORTED);
	assert_int_equal(err_cause_of(-EIO, &err), ERR_CAUSE_OTHER);
	(void)err_lack(&err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION, "", "new");
	assert_int_equal(err_cause_of(-ENOTSUP, &err), ERR_CAUSE_UNKNOWN_VERSION);
	/* Nothing is guessed where somebody has looked at it. */
	(void)err_lack(&err, -EPERM, ERR_CAUSE_OTHER, "look at the log", "forbidden");
	assert_int_equal(err_cause_of(-EPERM, &err), ERR_CAUSE_OTHER);
	assert_true(err_cause_is_of_machine(ERR_CAUSE_DISABLED));
	assert_true(err_cause_is_of_machine(ERR_CAUSE_DISK));
	assert_false(err_cause_is_of_machine(ERR_CAUSE_DENIED));
	assert_false(err_cause_is_of_machine(ERR_CAUSE_OTHER));
}

static void err_cuts_what_does_not_fit(void **state)
{
	struct err err = {0};
	char longest[2000];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	(void)err_set(&err, -1, "%s", longest);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	(void)err_prefix(&err, -1, "%s", longest);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void json_puts_commas_and_nests(void **state)
{
	_cleanup_(buf_release) struct buf out = {0};
	struct json j = json_to(&out);

	(void)state;
	json_object_begin(&j);
	json_key(&j, "a");
	json_array_begin(&j);
	json_int(&j, -1);
	json_uint(&j, UINT64_MAX);
	json_array_begin(&j);
	json_array_end(&j);
	json_double(&j, 0.5);
	json_double(&j, NAN);
	json_double(&j, INFINITY);
	json_array_end(&j);
	json_key(&j, "b");
	json_bool(&j, true);
	json_key(&j, "c");
	json_cstring(&j, NULL);
	json_key(&j, "d");
	json_object_begin(&j);
	json_object_end(&j);
	json_object_end(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_cstr(&out), "{\"a\":[-1,18446744073709551615,[],0.5,null,null],"
					    "\"b\":true,\"c\":null,\"d\":{}}");
}

static void expect_json(struct view in, const char *expected)
{
	_cleanup_(buf_release) struct buf out = {0};
	struct json j = json_to(&out);

	json_string(&j, in);
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_cstr(&out), expected);
}

static void json_escapes_and_repairs_strings(void **state)
{
	(void)state;
	expect_json(view_str("a\"b\\c\n\t"), "\"a\\\"b\\\\c\\u000a\\u0009\"");
	expect_json(view_of("\0", 1), "\"\\u0000\"");
	expect_json(view_str("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
		    "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
	expect_json(view_str("\xff"), "\"\\ufffd\"");
	expect_json(view_str("\xc3"), "\"\\ufffd\"");			    /* cut off */
	expect_json(view_str("\xc0\x80"), "\"\\ufffd\\ufffd\"");	    /* overlong */
	expect_json(view_str("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\""); /* surrogate */
	expect_json(view_str("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void json_reports_the_first_error_at_the_end(void **state)
{
	_cleanup_(buf_release) struct buf out = buf_with_max(8);
	_cleanup_(buf_release) struct buf deep = {0};
	struct json j = json_to(&out);

	(void)state;
	json_cstring(&j, "too long for eight bytes");
	json_null(&j);
	assert_int_equal(json_finish(&j), -E2BIG);
	j = json_to(&deep);
	for (int i = 0; i < 2 * JSON_MAX_DEPTH; i++)
		json_array_begin(&j);
	for (int i = 0; i < 2 * JSON_MAX_DEPTH; i++)
		json_array_end(&j);
	assert_int_equal(json_finish(&j), -E2BIG);
}

static void durations_have_units(void **state)
{
	const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"500ms", 500 * NS_PER_MS},  {"30s", 30 * NS_PER_SEC},
		{"5m", 300 * NS_PER_SEC},    {"1h", 3600 * NS_PER_SEC},
		{"7d", 604800 * NS_PER_SEC}, {"2", 2 * NS_PER_SEC},
		{"0.5s", 500 * NS_PER_MS},   {"0", 0},
	};
	const char *bad[] = {"",    "s",   "-1s",  "+1s", " 1s",    "1 s",  "1x",
			     "inf", "nan", "1e3s", "0x5", "1.2.3s", "1sec", "99999999999d"};
	uint64_t ns = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(clock_parse_duration(good[i].text, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	ns = 7;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (clock_parse_duration(bad[i], &ns) != -EINVAL)
			fail_msg("\"%s\" was taken for a duration", bad[i]);
	assert_int_equal(ns, 7);
}

static void clocks_go_forward(void **state)
{
	uint64_t mono = clock_mono_ns(), cpu = clock_cpu_ns();

	(void)state;
	clock_sleep_ns(2 * NS_PER_MS);
	assert_true(clock_mono_ns() - mono >= 2 * NS_PER_MS);
	assert_true(clock_cpu_ns() >= cpu);
	assert_true(clock_unix_ns() > 1600000000 * NS_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_carries_the_sentence_and_the_code),
		cmocka_unit_test(err_keeps_the_remedy_apart_until_there_is_another_sentence),
		cmocka_unit_test(err_is_passed_on_whole_and_described_in_one_line),
		cmocka_unit_test(err_has_a_cause_by_what_was_said_or_by_its_code),
		cmocka_unit_test(err_cuts_what_does_not_fit),
		cmocka_unit_test(json_puts_commas_and_nests),
		cmocka_unit_test(json_escapes_and_repairs_strings),
		cmocka_unit_test(json_reports_the_first_error_at_the_end),
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(clocks_go_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
