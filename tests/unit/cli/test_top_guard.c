/* tests/unit/cli/test_top_guard.c: signals while `sonde top` starts. */
#include "cli/top/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/top/live.h"

/* If nobody heeds signals: killed, which is no exit. */
#define NEVER_S 60

/* A process that is under way, with its guard. */
static pid_t start_guarded(void)
{
	struct top_guard *guard = NULL;
	int ready[2], signals;
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signals = top_signals_open(NULL);
		if (signals < 0 || top_guard_new(signals, &guard, NULL) < 0 ||
		    write(ready[1], "r", 1) != 1)
			_exit(77);
		(void)alarm(NEVER_S);
		for (;;)
			(void)pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void expect_exit(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void who_starts_is_ended_by_signals(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		pid_t pid = start_guarded();

		/* Of no consequence. */
		assert_int_equal(kill(pid, SIGWINCH), 0);
		assert_int_equal(kill(pid, signals[i]), 0);
		expect_exit(pid);
	}
}

static void who_starts_can_be_stopped_and_continued(void **state)
{
	pid_t pid = start_guarded();
	int status;

	(void)state;
	assert_int_equal(kill(pid, SIGTSTP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(kill(pid, SIGTERM), 0);
	expect_exit(pid);
}

static void begin_and_dismiss(void)
{
	struct top_guard *guard = NULL;
	int signals = top_signals_open(NULL);

	if (signals < 0 || top_guard_new(signals, &guard, NULL) < 0)
		_exit(77);
	top_guard_dismiss(guard);
	(void)kill(getpid(), SIGTERM);
	_exit(top_signals_take(signals) == SIGTERM ? 5 : 6);
}

static void who_has_started_gets_its_signals_itself(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		begin_and_dismiss();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_starts_is_ended_by_signals),
		cmocka_unit_test(who_starts_can_be_stopped_and_continued),
		cmocka_unit_test(who_has_started_gets_its_signals_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
