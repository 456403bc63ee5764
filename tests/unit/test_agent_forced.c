/* tests/unit/test_agent_forced.c: notes of forced rates outlive the agent, and are set back. */
#include "agent/forced.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"

static char dir[64];
static char path[96];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/sonde-forced-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/forced-rates", dir);
	return 0;
}

static int teardown(void **state)
{
	char beside[128];

	(void)state;
	(void)snprintf(beside, sizeof(beside), "%s.new", path);
	(void)unlink(beside);
	(void)unlink(path);
	return rmdir(dir);
}

static struct forced_rates *open_notes(void)
{
	struct forced_rates *f;
	struct err err;

	assert_int_equal(forced_rates_open(dir, &f, &err), 0);
	return f;
}

static size_t lines_noted(void)
{
	_cleanup_(buf_release) struct buf text = {0};
	size_t n = 0;

	assert_int_equal(io_read_file(AT_FDCWD, path, &text, NULL), 0);
	for (size_t i = 0; i < text.len; i++)
		n += text.data[i] == '\n';
	return n;
}

static struct forced_rate rate_of(pid_t pid)
{
	struct forced_rate x = {.space = 0xabc, .old = 0, .ours = 524288};

	assert_int_equal(proc_id_of(pid, &x.id, NULL), 0);
	return x;
}

static void note_outlives_an_agent_that_is_killed(void **state)
{
	struct forced_rates *f;
	struct forced_rate x = rate_of(getpid());
	struct err err;
	int status;
	pid_t child;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		f = open_notes();
		if (forced_rates_add(f, &x, &err) == 0)
			(void)kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	f = open_notes();
	assert_int_equal(lines_noted(), 1);
	assert_int_equal(forced_rates_remove(f, &x.id, &err), 0);
	assert_int_equal(lines_noted(), 0);
	forced_rates_close(f);
}

static void note_of_a_process_that_ended_is_dropped(void **state)
{
	struct forced_rates *f = open_notes();
	struct forced_rate x;
	struct err err;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	x = rate_of(child);
	assert_int_equal(forced_rates_add(f, &x, &err), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(forced_rates_restore(f, &err), 1);
	assert_int_equal(lines_noted(), 0);
	forced_rates_close(f);
}

static void note_of_an_earlier_program_of_the_process_is_dropped(void **state)
{
	struct forced_rates *f = open_notes();
	/* We live, but our address space is not the one that was noted. */
	struct forced_rate x = rate_of(getpid());
	struct err err;

	(void)state;
	assert_int_equal(forced_rates_add(f, &x, &err), 0);
	assert_int_equal(forced_rates_restore(f, &err), 1);
	assert_int_equal(lines_noted(), 0);
	forced_rates_close(f);
}

static void note_that_cannot_be_followed_now_stays(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct forced_rates *f = open_notes();
	struct forced_rate x = rate_of(getpid());
	struct err err;

	(void)state;
	assert_int_equal(proc_mem_open(getpid(), &mem, &err), 0);
	/* The right address space, of what is no Go program. */
	x.space = forced_space(mem);
	assert_int_equal(forced_rates_add(f, &x, &err), 0);
	assert_int_equal(forced_rates_restore(f, &err), 0);
	assert_int_equal(lines_noted(), 1);
	forced_rates_close(f);
}

static void notes_that_make_no_sense_are_ignored(void **state)
{
	static const char text[] = "nonsense\n-1 2 3 4 5\n1 2 3\n1 2 3 4 5 6\n\n7 8 9 0 524288\n";
	struct forced_rates *f;
	struct err err;

	(void)state;
	assert_int_equal(io_write_file(path, view_of(text, sizeof(text) - 1), &err), 0);
	f = open_notes();
	/* The last is of a process that is not there. */
	assert_int_equal(forced_rates_restore(f, &err), 1);
	assert_int_equal(lines_noted(), 0);
	forced_rates_close(f);
}

static void folder_that_cannot_be_written_is_an_error_before_any_rate_is(void **state)
{
	struct forced_rates *f;
	struct forced_rate x = rate_of(getpid());
	struct err err;

	(void)state;
	assert_int_equal(forced_rates_open("/nonexistent", &f, &err), 0);
	assert_int_equal(forced_rates_add(f, &x, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/forced-rates"));
	forced_rates_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(note_outlives_an_agent_that_is_killed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(note_of_a_process_that_ended_is_dropped, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			note_of_an_earlier_program_of_the_process_is_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(note_that_cannot_be_followed_now_stays, setup,
						teardown),
		cmocka_unit_test_setup_teardown(notes_that_make_no_sense_are_ignored, setup,
						teardown),
		cmocka_unit_test(folder_that_cannot_be_written_is_an_error_before_any_rate_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
