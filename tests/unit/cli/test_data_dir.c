/* tests/unit/cli/test_data_dir.c: where profiles are kept, and which window of time is meant. */
#include "cli/data_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define NOBODY 65534 /* its home is /nonexistent */

static void folder(const char *option, const char *want)
{
	_cleanup_free_ char *dir = NULL;

	assert_int_equal(data_dir_path(option, &dir, NULL), 0);
	assert_string_equal(dir, want);
}

static int forget(void **state)
{
	(void)state;
	return unsetenv("SONDE_DATA_DIR") || unsetenv("XDG_DATA_HOME") || unsetenv("HOME");
}

static void what_is_given_comes_first_then_the_variable(void **state)
{
	struct err err = {};
	char *dir = NULL;

	(void)state;
	assert_int_equal(setenv("SONDE_DATA_DIR", "/var/profiles", 1), 0);
	folder("here", "here");
	folder(NULL, "/var/profiles");
	assert_int_equal(data_dir_path("", &dir, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--data-dir"));
	assert_null(dir);
	/* Set to nothing is as good as not set. */
	assert_int_equal(setenv("SONDE_DATA_DIR", "", 1), 0);
	if (geteuid() == 0)
		folder(NULL, "/var/lib/sonde");
}

static void people_have_it_in_their_home(void **state)
{
	bool root = geteuid() == 0;

	(void)state;
	if (root)
		assert_int_equal(seteuid(NOBODY), 0);
	assert_int_equal(setenv("HOME", "/home/ada", 1), 0);
	folder(NULL, "/home/ada/.local/share/sonde");
	assert_int_equal(setenv("XDG_DATA_HOME", "relative", 1), 0);
	folder(NULL, "/home/ada/.local/share/sonde");
	assert_int_equal(setenv("XDG_DATA_HOME", "/data/ada", 1), 0);
	folder(NULL, "/data/ada/sonde");
	assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
	assert_int_equal(unsetenv("HOME"), 0);
	/* Services and cron jobs may have no variable: the list of users knows. */
	if (root)
		folder(NULL, "/nonexistent/.local/share/sonde");
	if (root)
		assert_int_equal(seteuid(0), 0);
}

static void the_last_hour_is_the_usual_window(void **state)
{
	struct store_window w = {};
	struct err err = {};

	(void)state;
	assert_int_equal(data_dir_window(NULL, NULL, &w, NULL), 0);
	assert_int_equal(w.to_ns - w.from_ns, 3600 * (int64_t)NS_PER_SEC);
	assert_int_equal(data_dir_window("1000", "2000", &w, NULL), 0);
	assert_int_equal(w.from_ns, 1000 * (int64_t)NS_PER_SEC);
	assert_int_equal(w.to_ns, 2000 * (int64_t)NS_PER_SEC);
	assert_int_equal(data_dir_window("2000", "1000", &w, &err), -EINVAL);
	assert_int_equal(w.to_ns, 2000 * (int64_t)NS_PER_SEC);
	assert_int_equal(data_dir_window("x", NULL, &w, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--from"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_given_comes_first_then_the_variable, forget),
		cmocka_unit_test_setup(people_have_it_in_their_home, forget),
		cmocka_unit_test(the_last_hour_is_the_usual_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
