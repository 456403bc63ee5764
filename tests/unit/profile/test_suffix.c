/* tests/unit/profile/test_suffix.c: what compilers append to names, and what only looks like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "profile/suffix.h"

static void expect(enum profile_suffix_trust trust, const char *name, const char *expected)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "%.*s", (int)profile_suffix_start(view_str(name), trust),
		       name);
	assert_string_equal(text, expected);
}

static void native_names_lose_all_suffixes(void **state)
{
	static const char *const names[][2] = {
		{"method_vectorcall.lto_priv.0", "method_vectorcall"},
		{"scan.constprop.0", "scan"},
		{"scan.constprop.0.isra.0", "scan"},
		{"grow.part.0.cold", "grow"},
		{"grow.cold.12", "grow"},
		{"poll.llvm.1837465", "poll"},
		{"malloc.localalias", "malloc"},
		{"f(int) [clone .isra.0]", "f(int)"},
		{"f(int) [clone .constprop.0] [clone .cold]", "f(int)"},
		{"core::ptr::drop_in_place<T>.llvm.99", "core::ptr::drop_in_place<T>"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect(PROFILE_SUFFIX_ALL, names[i][0], names[i][1]);
}

static void other_dots_stay(void **state)
{
	static const char *const names[] = {"",
					    ".",
					    ".cold",
					    ".part.0",
					    "a.0",
					    "a.b",
					    "a.12",
					    "a.part",
					    "a.part.",
					    "a.part.x",
					    "a.cold.x",
					    "[libfoo.so+0x1230]",
					    "std::vector<int>::at",
					    "operator[]",
					    "f[clone .x]",
					    "xpart.0",
					    "cold"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect(PROFILE_SUFFIX_ALL, names[i], names[i]);
}

static void unknown_names_lose_only_what_no_language_has(void **state)
{
	(void)state;
	expect(PROFILE_SUFFIX_NUMBERED, "scan.constprop.0", "scan");
	expect(PROFILE_SUFFIX_NUMBERED, "com.shop.Storage.cold", "com.shop.Storage.cold");
	expect(PROFILE_SUFFIX_NUMBERED, "com.shop.Storage.part", "com.shop.Storage.part");
	expect(PROFILE_SUFFIX_NUMBERED, "Foo.lambda$main$0", "Foo.lambda$main$0");
	expect(PROFILE_SUFFIX_NEVER, "main.part.0", "main.part.0");
	expect(PROFILE_SUFFIX_NEVER, "main.(*T).cold-fm", "main.(*T).cold-fm");
	expect(PROFILE_SUFFIX_NEVER, "main.run.func1.2", "main.run.func1.2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(native_names_lose_all_suffixes),
		cmocka_unit_test(other_dots_stay),
		cmocka_unit_test(unknown_names_lose_only_what_no_language_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
