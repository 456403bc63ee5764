/* tests/unit/golang/test_version.c: release names, and the table of releases. */
#include "golang/binary/version.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "golang/binary/layout.h"
#include "golang/buckets/bucket.h"

static const struct {
	const char *text;
	unsigned int minor; /* 0: refused */
	const char *as;
} versions[] = {
	{"go1.17", 17, "go1.17"},
	{"go1.27.3", 27, "go1.27.3"},
	{"go1.27rc1", 27, "go1.27rc1"},
	{"go1.20.12 (vendor build)", 20, "go1.20.12"},
	{"go1.22.1 X:loopvar", 22, "go1.22.1"},
	{"devel go1.28-0123abc Tue Aug 4", 28, "go1.28-0123abc"},
	{"1.27", 27, "go1.27"},
	{"go1.999", 999, "go1.999"},
	{"go1.2\n", 2, "go1.2"},
	{"", 0, NULL},
	{"go", 0, NULL},
	{"go1", 0, NULL},
	{"go1.", 0, NULL},
	{"go1.x", 0, NULL},
	{"go2.1", 0, NULL},
	{"go11.7", 0, NULL},
	{"1", 0, NULL},
	{"devel +0123abc Tue", 0, NULL},
	{"go1.1000", 0, NULL},
	{"go1.99999999999999999999999999", 0, NULL},
	{" go1.20", 0, NULL},
	{"\xff\xfe garbage", 0, NULL},
	{"go1.-1", 0, NULL},
};

static void version_is_understood_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct golang_version v = {.minor = 4711, .text = "untouched"};
		bool ok = golang_version_parse(view_str(versions[i].text), &v);

		if (ok != (versions[i].minor != 0))
			fail_msg("'%s'", versions[i].text);
		assert_int_equal(v.minor, ok ? versions[i].minor : 4711);
		assert_string_equal(v.text, ok ? versions[i].as : "untouched");
	}
}

static void version_without_a_nul_is_not_read_beyond_its_end(void **state)
{
	static const char text[] = "go1.27.3";
	struct golang_version v;

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		/* Exactly as long, so that the sanitizer sees a byte too many. */
		char *bytes = malloc(len ? len : 1);
		bool ok;

		assert_non_null(bytes);
		memcpy(bytes, text, len);
		ok = golang_version_parse(view_of(bytes, len), &v);
		free(bytes);
		assert_int_equal(ok, len >= 5);
		if (len == 5)
			assert_int_equal(v.minor, 2);
		if (len == 8)
			assert_string_equal(v.text, "go1.27.3");
	}
}

static void version_that_is_huge_is_cut(void **state)
{
	struct golang_version v;
	char text[4096];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "go1.27-", 7);
	assert_true(golang_version_parse(view_of(text, sizeof(text)), &v));
	assert_int_equal(v.minor, 27);
	assert_true(strlen(v.text) < sizeof(v.text));
	assert_memory_equal(v.text, "go1.27-xxx", 10);
	memset(text, '9', sizeof(text));
	memcpy(text, "go1.", 4);
	assert_false(golang_version_parse(view_of(text, sizeof(text)), &v));
}

static void layout_is_known_from_the_oldest_to_the_newest(void **state)
{
	const struct golang_layout *layout;
	struct err err;

	(void)state;
	for (unsigned int minor = GOLANG_OLDEST_MINOR; minor <= GOLANG_NEWEST_MINOR; minor++) {
		assert_int_equal(golang_layout_for(minor, &layout, &err), 0);
		assert_int_equal(layout->minor, minor);
		assert_true(layout->max_depth <= GOLANG_BUCKET_MAX_DEPTH);
		assert_int_equal(layout->cycle_words, minor >= 27 ? 2 : 4);
		assert_int_equal(layout->cycle_shift, minor >= 19);
		assert_int_equal(layout->max_depth > 32, minor >= 23);
		/* Everything but next is read in one block of 512 bytes. */
		assert_true(layout->md_gofunc + 8 <= 512 && layout->md_textsectmap + 24 <= 512);
	}
}

static void layout_of_an_unknown_release_names_the_way_on(void **state)
{
	static const unsigned int unknown[] = {0, 1, 16, 28, 999, 4294967295U};
	const struct golang_layout *layout = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		assert_int_equal(golang_layout_for(unknown[i], &layout, &err), -ENOTSUP);
		assert_null(layout);
		assert_int_equal(err.cause, ERR_CAUSE_UNKNOWN_VERSION);
		assert_non_null(strstr(err.remedy, "--assume-layout"));
		assert_non_null(strstr(err.text, "1.17 to 1.27"));
	}
	(void)golang_layout_for(28, &layout, &err);
	assert_non_null(strstr(err.text, "Go 1.28"));
	assert_non_null(strstr(err.remedy, "--assume-layout 1.27"));
	(void)golang_layout_for(16, &layout, &err);
	assert_non_null(strstr(err.remedy, "--assume-layout 1.17"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_is_understood_or_refused),
		cmocka_unit_test(version_without_a_nul_is_not_read_beyond_its_end),
		cmocka_unit_test(version_that_is_huge_is_cut),
		cmocka_unit_test(layout_is_known_from_the_oldest_to_the_newest),
		cmocka_unit_test(layout_of_an_unknown_release_names_the_way_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
