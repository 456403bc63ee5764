/* tests/unit/query/test_origin.c: kinds and modules of functions, by what is known of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "query/origin.h"

struct known {
	const char *name;
	const char *file;
	const char *mapping;
	const char *expected; /* "kind module" */
};

static void expect(const struct known *k)
{
	struct view name = view_str(k->name), file = view_str(k->file);
	struct view mapping = view_str(k->mapping);
	enum query_kind kind = query_kind_of(name, file, mapping);
	struct view module = query_module_of(kind, name, file, mapping);
	char text[300];

	(void)snprintf(text, sizeof(text), "%s %.*s", query_kind_name(kind), (int)module.len,
		       (const char *)module.data);
	assert_string_equal(text, k->expected);
}

static void functions_have_the_module_a_reader_would_name(void **state)
{
	static const struct known all[] = {
		{"main.main", "/src/main.go", "", "go main"},
		{"github.com/a/b.(*T).M", "b.go", "shop", "go github.com/a/b"},
		{"slices.Sort[go.shape.[]a/b.C]", "sort.go", "", "go slices"},
		{"gopkg.in/yaml%2ev3.Unmarshal", "yaml.go", "", "go gopkg.in/yaml%2ev3"},
		{"runtime.memmove", "/go/src/runtime/memmove_amd64.s", "shop", "go runtime"},
		{"main.run.func1.2", "main.go", "", "go main"},
		{"org.shop.Cart.add", "Cart.java", "", "java org.shop"},
		{"org.shop.Cart.lambda$add$0", "", "", "java org.shop"},
		{"Main.main", "", "", "java Main"},
		{"<module>", "/srv/rank.py", "", "python rank"},
		{"loads", "/usr/lib/python3.11/json/__init__.py", "", "python json"},
		{"get", "/opt/v/lib/python3.12/site-packages/requests/api.py", "",
		 "python requests"},
		{"six", "/usr/lib/python3/dist-packages/six.py", "", "python six"},
		{"init", "/srv/shop/__init__.py", "", "python shop"},
		{"_find", "<frozen importlib._bootstrap>", "",
		 "python <frozen importlib._bootstrap>"},
		{"memcpy", "", "libc.so.6", "native libc.so.6"},
		{"inflate", "inflate.c", "libz.so.1", "native libz.so.1"},
		{"[libz.so.1+0x1230]", "", "libz.so.1", "native libz.so.1"},
		{"memcpy", "", "", "native "},
		{"std::rt::lang_start", "rt.rs", "", "native "},
		{"_PyEval_EvalFrameDefault", "", "python3.11", "runtime python3.11"},
		{"PyDict_New", "dictobject.c", "libpython3.11.so.1.0",
		 "runtime libpython3.11.so.1.0"},
		{"JavaThread::run", "", "libjvm.so", "runtime libjvm.so"},
		{"main", "", "python-helper", "native python-helper"},
		{"vfs_read", "", "[kernel.kallsyms]", "kernel kernel"},
		{"nf_hook_slow [nf_tables]", "", "[kernel.kallsyms]", "kernel nf_tables"},
		{"[kernel]", "", "", "kernel kernel"},
		{"[no unwind information]", "", "", "other "},
		{"(other)", "", "", "other "},
		{"<unknown>", "", "", "other "},
		{"", "", "", "other "},
		{"LazyCompile:*run /srv/app.js:3", "", "", "js "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		expect(&all[i]);
}

/* Names and files are a target's own words. */
static void odd_texts_are_harmless(void **state)
{
	static const char *const texts[] = {"",
					    "/",
					    "//",
					    ".",
					    "..",
					    "[",
					    "]",
					    " []",
					    "[]",
					    "(",
					    "__init__.py",
					    "/__init__.py",
					    "a/",
					    "/lib/python",
					    "/lib/python/",
					    "/site-packages/",
					    ".py",
					    "x.java",
					    "\xff\xfe.go",
					    "=",
					    "<"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
			for (int kind = 0; kind < QUERY_KIND_N; kind++) {
				struct view name = view_str(texts[i]), file = view_str(texts[k]);

				(void)query_kind_of(name, file, view_str(""));
				assert_true(query_module_of(kind, name, file, file).len <=
					    name.len + file.len + strlen("kernel"));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_the_module_a_reader_would_name),
		cmocka_unit_test(odd_texts_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
