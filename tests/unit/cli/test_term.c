/* tests/unit/cli/test_term.c: names from a target cannot steer the terminal; runtimes are known by
 * their files. */
#include "cli/term.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/ps/list.h"

static void control_characters_become_question_marks(void **state)
{
	char text[] = "main.\033[31mred\r\n\x7f\302\233x";

	(void)state;
	text_clean(text, strlen(text));
	assert_string_equal(text, "main.?[31mred?????x");
}

static void other_letters_stay_as_they_are(void **state)
{
	char text[] = "main.caf\303\251\302\267\302\240[...]";
	char copy[sizeof(text)];

	(void)state;
	memcpy(copy, text, sizeof(text));
	text_clean(text, strlen(text));
	assert_string_equal(text, copy);
}

static void a_cut_letter_at_the_end_is_no_overrun(void **state)
{
	char *text = strdup("x\302");

	(void)state;
	assert_non_null(text);
	text_clean(text, 2);
	assert_string_equal(text, "x\302");
	free(text);
}

static void fit(const char *text, size_t cells, bool keep_end, const char *want)
{
	_cleanup_(buf_release) struct buf out = {};

	assert_int_equal(term_fit(&out, text, cells, keep_end), 0);
	assert_string_equal(cells ? buf_cstr(&out) : "", want);
}

static void text_is_cut_and_padded_to_columns(void **state)
{
	(void)state;
	fit("main.f", 8, false, "main.f  ");
	fit("main.f", 6, false, "main.f");
	fit("main.f", 5, false, "main" TERM_ELLIPSIS);
	fit("main.f", 5, true, TERM_ELLIPSIS "in.f");
	fit("main.f", 1, true, TERM_ELLIPSIS);
	fit("main.f", 0, false, "");
	fit("", 2, true, "  ");
}

static void wide_characters_take_two_columns(void **state)
{
	/* U+65E5 U+672C, and a letter. */
	const char *text = "\346\227\245\346\234\254x";

	(void)state;
	assert_int_equal(term_cells(text), 5);
	fit(text, 5, false, text);
	fit(text, 4, false, "\346\227\245" TERM_ELLIPSIS " ");
	fit(text, 3, true, TERM_ELLIPSIS "x ");
	fit("caf\303\251", 4, false, "caf\303\251");
}

static void what_has_no_width_or_turns_the_text_is_a_question_mark(void **state)
{
	(void)state;
	/* A right-to-left override, a combining accent, a lone continuation, an overlong slash. */
	fit("a\342\200\256b", 3, false, "a?b");
	fit("e\314\201", 2, false, "e?");
	fit("\200z", 2, false, "?z");
	fit("\300\257", 2, false, "??");
	fit("\340\200\257", 1, false, "?");
	fit("cut\346\227", 5, false, "cut??");
	fit("\355\240\200", 1, false, "?");
}

static void shorten(const char *text, size_t cells, const char *want)
{
	_cleanup_(buf_release) struct buf out = {};

	assert_int_equal(term_shorten(&out, text, cells), 0);
	assert_string_equal(out.len ? buf_cstr(&out) : "", want);
	assert_true(term_cells(want) <= cells);
}

static void what_is_too_long_loses_its_middle(void **state)
{
	(void)state;
	shorten("main.f", 6, "main.f");
	shorten("github.com/acme/shop/orders.Place", 16, "githu" TERM_ELLIPSIS "ders.Place");
	shorten("main.f", 2, TERM_ELLIPSIS "f");
	shorten("main.f", 1, TERM_ELLIPSIS);
	shorten("main.f", 0, "");
	/* Two columns that do not fit are left empty, not split. */
	shorten("\346\227\245\346\234\254\346\227\245", 5,
		TERM_ELLIPSIS "\346\234\254\346\227\245");
	shorten("\346\227\245\346\234\254\346\227\245", 4, TERM_ELLIPSIS "\346\227\245");
}

static void a_file_is_no_terminal(void **state)
{
	_cleanup_close_ int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(term_width(fd), 0);
	assert_int_equal(term_height(fd), 0);
	assert_false(term_wants_colour(fd));
}

static void no_color_is_obeyed_on_a_terminal(void **state)
{
	_cleanup_close_ int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	_cleanup_close_ int slave = -1;

	(void)state;
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		skip();
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	assert_int_equal(setenv("TERM", "xterm", 1), 0);
	assert_int_equal(unsetenv("NO_COLOR"), 0);
	assert_true(term_wants_colour(slave));
	assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
	assert_false(term_wants_colour(slave));
	assert_true(term_width(slave) > 0);
}

static void runtimes_are_known_by_their_files(void **state)
{
	static const struct {
		const char *path;
		bool is_exe;
		const char *runtime;
		const char *version;
	} cases[] = {
		{"/usr/lib/jvm/java-17/lib/server/libjvm.so", false, "java", ""},
		{"/usr/bin/python3.11", true, "python", "3.11"},
		{"/usr/lib/libpython3.9.so.1.0", false, "python", "3.9"},
		{"/usr/bin/node", true, "node", ""},
		{"/usr/lib/libnode.so.108", false, "node", ""},
		{"/home/node", false, NULL, NULL},
		{"/bin/bash", true, NULL, NULL},
		{"", true, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ps_entry e = {};

		assert_int_equal(ps_runtime_of_path(cases[i].path, cases[i].is_exe, &e),
				 cases[i].runtime != NULL);
		if (!cases[i].runtime)
			continue;
		assert_string_equal(e.runtime, cases[i].runtime);
		assert_string_equal(e.version, cases[i].version);
	}
}

static void what_cpu_profiles_lack_is_said_by_runtime(void **state)
{
	static const struct {
		const char *runtime;
		const char *version;
		bool perf_map;
		const char *gives;
		const char *remedy; /* part of it; "" for none */
	} cases[] = {
		{"go", "go1.27.3", false, "yes", ""},
		{"native", "", false, "yes", ""},
		{"kernel", "", false, "yes", ""},
		{"python", "3.9", false, "yes", ""},
		{"python", "3.13", true, "yes", ""},
		{"python", "3.8", false, "C functions only", "3.9 to 3.13"},
		{"python", "2.7", true, "C functions and its perf map", ""},
		{"python", "", false, "C functions only", "3.9 to 3.13"},
		{"node", "", false, "no JavaScript names", "--perf-basic-prof"},
		{"node", "", true, "yes, with its perf map", ""},
		{"java", "", false, "no Java names", "Compiler.perfmap"},
		{"java", "", true, "yes, with its perf map", "PreserveFramePointer"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ps_cpu cpu;

		ps_cpu_describe(cases[i].runtime, cases[i].version, cases[i].perf_map, &cpu);
		assert_true(cpu.available);
		assert_string_equal(cpu.gives, cases[i].gives);
		if (cases[i].remedy[0])
			assert_non_null(strstr(cpu.remedy, cases[i].remedy));
		else
			assert_string_equal(cpu.remedy, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_characters_become_question_marks),
		cmocka_unit_test(other_letters_stay_as_they_are),
		cmocka_unit_test(a_cut_letter_at_the_end_is_no_overrun),
		cmocka_unit_test(text_is_cut_and_padded_to_columns),
		cmocka_unit_test(wide_characters_take_two_columns),
		cmocka_unit_test(what_has_no_width_or_turns_the_text_is_a_question_mark),
		cmocka_unit_test(what_is_too_long_loses_its_middle),
		cmocka_unit_test(a_file_is_no_terminal),
		cmocka_unit_test(no_color_is_obeyed_on_a_terminal),
		cmocka_unit_test(runtimes_are_known_by_their_files),
		cmocka_unit_test(what_cpu_profiles_lack_is_said_by_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
