/* tests/unit/base/test_text.c: no name of a stranger steers a terminal or turns a page around. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"

static void check_clean(const char *text, const char *wanted)
{
	char copy[64];
	size_t len = strlen(text);

	assert_true(len < sizeof(copy));
	memcpy(copy, text, len + 1);
	text_clean(copy, len);
	assert_string_equal(copy, wanted);
}

static void what_steers_or_turns_is_replaced_byte_by_byte(void **state)
{
	(void)state;
	check_clean("", "");
	check_clean("plain", "plain");
	check_clean("a\x1b[31mb\n\x7f", "a?[31mb??");
	check_clean("\xc2\x9b"
		    "31m",
		    "??31m");
	check_clean("\xc2\x80-\xc2\x9f-\xc2\xa0", "\?\?-\?\?-\xc2\xa0");
	check_clean("x\xe2\x80\xae"
		    "cod.exe",
		    "x???cod.exe");
	check_clean("\xe2\x80\x8e\xe2\x80\x8f", "??????");
	check_clean("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae", "????????????");
	check_clean("\xe2\x81\xa6\xe2\x81\xa9", "??????");
	check_clean("\xd8\x9c\xef\xbb\xbf", "?????");
}

static void what_nobody_sees_is_replaced(void **state)
{
	(void)state;
	check_clean("shop\xe2\x80\x8b", "shop???");
	check_clean("sh\xc2\xad"
		    "op",
		    "sh??op");
	check_clean("\xe2\x81\xa0-\xe2\x81\xa4", "\?\?\?-\?\?\?");
}

static void text_of_all_scripts_stays(void **state)
{
	(void)state;
	check_clean("grüß ἀρχή שלום العربية 日本語 🙂",
		    "grüß ἀρχή שלום العربية 日本語 🙂");
	/* Neighbours of what is replaced. */
	check_clean("\xc2\xac\xc2\xae\xe2\x80\x8a\xe2\x80\x8c\xe2\x81\x9f",
		    "\xc2\xac\xc2\xae\xe2\x80\x8a\xe2\x80\x8c\xe2\x81\x9f");
	check_clean("\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf",
		    "\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf");
	check_clean("\xe2\x81\xa5\xe2\x81\xaa\xef\xbb\xbe", "\xe2\x81\xa5\xe2\x81\xaa\xef\xbb\xbe");
	/* Cut within a character, and not UTF-8 at all. */
	check_clean("\xe2\x80", "\xe2\x80");
	check_clean("\xe2", "\xe2");
	check_clean("\xff\xfe\xc2", "\xff\xfe\xc2");
}

static void json_shows_that_something_was_there(void **state)
{
	_cleanup_(buf_release) struct buf out = {};
	struct json j = json_to(&out);

	(void)state;
	json_cstring(&j, "x\xe2\x80\xae"
			 "cod\xc2\x9b\xd8\x9c");
	assert_string_equal(buf_cstr(&out), "\"x\\ufffdcod\\ufffd\\ufffd\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_steers_or_turns_is_replaced_byte_by_byte),
		cmocka_unit_test(what_nobody_sees_is_replaced),
		cmocka_unit_test(text_of_all_scripts_stays),
		cmocka_unit_test(json_shows_that_something_was_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
