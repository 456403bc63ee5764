/* tests/unit/cli/test_log.c: lines of the log, which values cannot break, and the last one of a
 * process. */
#include "cli/log.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void warn_with_values(void)
{
	log_event(LOG_INFO, "not shown", NULL);
	log_event(LOG_WARN, "trouble", "reason", "a \"quoted\" word\nlevel=error", "pid", "7",
		  NULL);
	log_event(LOG_NOTICE, "stopped", "code", "0", NULL);
}

static void crash(void)
{
	log_fatal_signals();
	/* The sanitizer takes SIGSEGV for itself. */
	(void)raise(SIGABRT);
}

static void be_terminated(void)
{
	log_fatal_signals();
	(void)raise(SIGTERM);
}

static void child_crashes(void)
{
	pid_t child;

	log_fatal_signals();
	child = fork();
	if (child == 0)
		(void)raise(SIGABRT);
	(void)waitpid(child, NULL, 0);
}

static void ignore_hangup(void)
{
	(void)signal(SIGHUP, SIG_IGN);
	log_fatal_signals();
	(void)raise(SIGHUP);
}

/* What a process that does so writes to stderr, and how it ends. */
static int run(void (*what)(void), char *text, size_t len)
{
	int fds[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* The sanitizers and cmocka have handlers of their own. */
		(void)signal(SIGSEGV, SIG_DFL);
		(void)signal(SIGABRT, SIG_DFL);
		(void)dup2(fds[1], STDERR_FILENO);
		(void)close(fds[0]);
		what();
		_exit(0);
	}
	(void)close(fds[1]);
	while ((n = read(fds[0], text + used, len - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_line_has_a_time_a_level_and_values_that_stay_values(void **state)
{
	char text[1024], before[32], after[32];
	time_t now = time(NULL);
	struct tm tm;

	(void)state;
	(void)strftime(before, sizeof(before), "time=%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	assert_int_equal(run(warn_with_values, text, sizeof(text)), 0);
	now = time(NULL);
	(void)strftime(after, sizeof(after), "time=%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	assert_true(strncmp(text, before, strlen(before)) >= 0);
	assert_true(strncmp(text, after, strlen(after)) <= 0);
	assert_non_null(strstr(text, "Z level=warn msg=trouble reason=\"a \\\"quoted\\\" "
				     "word?level=error\" pid=7\n"));
	assert_non_null(strstr(text, " level=notice msg=stopped code=0\n"));
	assert_null(strstr(text, "not shown"));
}

static void a_process_that_is_killed_says_so_and_still_is(void **state)
{
	char text[1024];
	int status;

	(void)state;
	status = run(crash, text, sizeof(text));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(
		strstr(text, "Z level=error msg=\"killed by a signal\" signal=SIGABRT code=134\n"));
	status = run(be_terminated, text, sizeof(text));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_non_null(strstr(text, " signal=SIGTERM code=143\n"));
}

static void neither_children_nor_ignored_signals_are_logged(void **state)
{
	char text[1024];

	(void)state;
	assert_int_equal(run(child_crashes, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(run(ignore_hangup, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_a_time_a_level_and_values_that_stay_values),
		cmocka_unit_test(a_process_that_is_killed_says_so_and_still_is),
		cmocka_unit_test(neither_children_nor_ignored_signals_are_logged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
