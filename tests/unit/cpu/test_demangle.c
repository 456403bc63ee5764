/* tests/unit/cpu/test_demangle.c: names of C++ and Rust functions, real and forged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cpu/symbols/demangle.h"

static void expect(const char *mangled, const char *wanted)
{
	char text[1024] = "before";

	assert_true(cpu_demangle(mangled, text, sizeof(text)) == (wanted != NULL));
	assert_string_equal(text, wanted ? wanted : "");
}

static void cxx_names_have_templates_and_no_parameters(void **state)
{
	(void)state;
	expect("_Z3fooiPKc", "foo");
	expect("_ZN3app6Server6handleERKSs", "app::Server::handle");
	expect("_ZNSt6vectorIiSaIiEE9push_backEOi",
	       "std::vector<int, std::allocator<int> >::push_back");
	expect("_Z3maxIiET_S0_S0_", "max<int>");
	expect("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()");
	expect("_ZN3FooC1Ev", "Foo::Foo");
	expect("_ZN3FoodlEPv", "Foo::operator delete");
	expect("_ZTV3Foo", "vtable for Foo");
	expect("_Z3foov.cold", "foo");
}

static void rust_names_lose_their_hash(void **state)
{
	(void)state;
	expect("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	expect("_ZN59_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$GT$3bar"
	       "17h930b740aa94f1d3aE",
	       "<Test + 'static as foo::Bar>::bar");
	expect("_ZN3app4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
	       "app::main::{{closure}}");
}

static void rust_paths_of_version_0(void **state)
{
	(void)state;
	expect("_RNvC6_123foo3bar", "123foo::bar");
	expect("_RNvCs1234_7mycrate4main", "mycrate::main");
	expect("_RNvNtCs1234_7mycrate3mod3fun", "mycrate::mod::fun");
	expect("_RNCNvC3app4main0", "app::main::{closure#0}");
	expect("_RNCNvC3app4mains_0", "app::main::{closure#1}");
	expect("_RNCNvC3app4mains0_3abc", "app::main::{closure:abc#2}");
	expect("_RNSNvC3app4main6vtable", "app::main::{shim:vtable#0}");
	expect("_RNvMs_C3appNtB4_3Foo3bar", "<app::Foo>::bar");
	expect("_RNvXC3appNtB2_3FooNtB2_5Trait3bar", "<app::Foo as app::Trait>::bar");
	expect("_RNvYhNtC3app5Trait3bar", "<u8 as app::Trait>::bar");
	expect("_RINvC3app3mapjNtB2_3FooE", "app::map::<usize, app::Foo>");
	expect("_RINvC3app3mapjEC5other", "app::map::<usize>");
	expect("_RNvC3app4main.llvm.1234", "app::main");
	expect("_RNvC3app4main.cold", "app::main");
}

static void rust_types_of_version_0(void **state)
{
	(void)state;
	expect("_RINvC3app1fabcdefhijlmnopstuvxyzE",
	       "app::f::<i8, bool, char, f64, str, f32, u8, isize, usize, i32, u32, i128, u128, _, "
	       "i16, u16, (), ..., i64, u64, !>");
	expect("_RINvC3app1fReQeRL_ePhOhE", "app::f::<&str, &mut str, &str, *const u8, *mut u8>");
	expect("_RINvC3app1fShAhj10_TEThEThbEE", "app::f::<[u8], [u8; 16], (), (u8,), (u8, bool)>");
	expect("_RINvC3app1fFEuFhEbFUKCEuFK9rust_callEuE",
	       "app::f::<fn(), fn(u8) -> bool, unsafe extern \"C\" fn(), "
	       "extern \"rust-call\" fn()>");
	expect("_RINvC3app1fFG0_RL1_hRL0_tEuE", "app::f::<for<'a, 'b> fn(&'a u8, &'b u16)>");
	expect("_RINvC3app1fDNtB2_5TraitEL_DINtB2_1GhEp4ItemtNtB2_4SendEL_E",
	       "app::f::<dyn app::Trait, dyn app::G<u8, Item = u16> + app::Send>");
	expect("_RINvC3app1fKb1_Kln7_KpKc41_KyffffffffffffffffE", NULL);
	expect("_RINvC3app1fKb1_Kln7_KpKc41_Kyffffffffffffffff_Ko10000000000000000_E",
	       "app::f::<true, -7, _, 'A', 18446744073709551615, 0x10000000000000000>");
}

static void rust_names_beyond_ascii(void **state)
{
	(void)state;
	expect("_RNvC3appu9bcher_kva", "app::bücher");
	expect("_RNvC3appu10wgv71a119e", "app::日本語");
	/* A number that goes past the last character. */
	expect("_RNvC3appu10abc_999999", NULL);
}

static void other_names_are_left_alone(void **state)
{
	static const char *const names[] = {
		"",    "main",		"_",   "_Z",	 "_R",		 "_R1C3app",
		"_RC", "_RNvC3app4mai", "_ZN", "_start", "__libc_start", "_RNvC3app4main_",
		"_RB_"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect(names[i], NULL);
}

static void what_does_not_fit_is_cut_between_characters(void **state)
{
	char text[16];

	(void)state;
	assert_true(cpu_demangle("_ZN3app14a_lengthy_name1fEv", text, sizeof(text)));
	assert_string_equal(text, "app::a_lengt...");
	assert_true(cpu_demangle("_RNvC3app14a_lengthy_name", text, sizeof(text)));
	assert_string_equal(text, "app::a_lengt...");
	assert_true(cpu_demangle("_RNvC6appappu10wgv71a119e", text, sizeof(text)));
	assert_string_equal(text, "appapp::日...");
}

/* Each type is a pair of the one before: the text doubles every few bytes. */
static void a_cxx_name_without_end_is_cut(void **state)
{
	char name[512] = "_Z1fISt4pairIiiE", text[256];
	size_t n = strlen(name);

	(void)state;
	for (int i = 0; i < 30; i++) {
		char c = (char)(i < 10 ? '0' + i : 'A' + i - 10);

		n += (size_t)snprintf(name + n, sizeof(name) - n, "S_IS%c_S%c_E", c, c);
	}
	(void)snprintf(name + n, sizeof(name) - n, "Evv");
	assert_true(cpu_demangle(name, text, sizeof(text)));
	assert_string_equal(text + strlen(text) - 3, "...");
}

static void a_rust_name_without_end_is_cut(void **state)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[512] = "_RINvC1a1fThhE", text[256];
	size_t place = 8, next = 12;

	(void)state;
	for (int i = 0; i < 30; i++) {
		char number[8];

		(void)snprintf(number, sizeof(number), "%.1s%c_",
			       place > 62 ? &digits[(place - 1) / 62] : "",
			       digits[(place - 1) % 62]);
		place = next;
		next += (size_t)snprintf(name + 2 + next, sizeof(name) - 2 - next, "TB%sB%sE",
					 number, number);
	}
	(void)snprintf(name + 2 + next, sizeof(name) - 2 - next, "E");
	assert_true(cpu_demangle(name, text, sizeof(text)));
	assert_string_equal(text + strlen(text) - 3, "...");
}

/* A place that repeats one around itself would never end. */
static void a_rust_name_that_repeats_itself_is_refused(void **state)
{
	char deep[CPU_DEMANGLE_MAX_INPUT + 1] = "_RINvC1a1f";

	(void)state;
	expect("_RNvB_4main", NULL);
	expect("_RINvC1a1fTB5_EE", NULL);
	expect("_RMC0B1_", NULL);
	memset(deep + 10, 'S', sizeof(deep) - 11);
	expect(deep, NULL);
}

static void a_name_of_absurd_length_is_left_alone(void **state)
{
	char name[CPU_DEMANGLE_MAX_INPUT + 64] = "_ZN";
	char text[64];

	(void)state;
	memset(name + 3, 'a', sizeof(name) - 4);
	assert_false(cpu_demangle(name, text, sizeof(text)));
	memset(name, '_', sizeof(name) - 1);
	name[1] = 'Z';
	assert_false(cpu_demangle(name, text, sizeof(text)));
}

static void all_names_of_the_cxx_library_are_as_binutils_has_them(void **state)
{
	static const char command[] =
		"t=$(mktemp) && f=$(cc -print-file-name=libstdc++.so.6) && [ -e \"$f\" ]"
		" && command -v c++filt >/dev/null"
		" && nm -D --defined-only \"$f\" | awk '{print $3}' | sed 's/@.*//' | sort -u "
		">$t"
		" && c++filt -p -i <$t | paste -d '\\n' $t - ; rm -f $t";
	char mangled[4096], wanted[8192], text[8192];
	size_t n = 0;
	FILE *f;

	(void)state;
	f = popen(command, "re");
	assert_non_null(f);
	while (fgets(mangled, sizeof(mangled), f) && fgets(wanted, sizeof(wanted), f)) {
		mangled[strcspn(mangled, "\n")] = 0;
		wanted[strcspn(wanted, "\n")] = 0;
		if (strlen(mangled) > CPU_DEMANGLE_MAX_INPUT)
			continue;
		if (!cpu_demangle(mangled, text, sizeof(text)))
			(void)snprintf(text, sizeof(text), "%s", mangled);
		assert_string_equal(text, wanted);
		n++;
	}
	assert_int_equal(pclose(f), 0);
	if (n == 0)
		skip();
	assert_true(n > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cxx_names_have_templates_and_no_parameters),
		cmocka_unit_test(rust_names_lose_their_hash),
		cmocka_unit_test(rust_paths_of_version_0),
		cmocka_unit_test(rust_types_of_version_0),
		cmocka_unit_test(rust_names_beyond_ascii),
		cmocka_unit_test(other_names_are_left_alone),
		cmocka_unit_test(what_does_not_fit_is_cut_between_characters),
		cmocka_unit_test(a_cxx_name_without_end_is_cut),
		cmocka_unit_test(a_rust_name_without_end_is_cut),
		cmocka_unit_test(a_rust_name_that_repeats_itself_is_refused),
		cmocka_unit_test(a_name_of_absurd_length_is_left_alone),
		cmocka_unit_test(all_names_of_the_cxx_library_are_as_binutils_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
