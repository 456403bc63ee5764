/* tests/unit/proc/test_id.c: process identity, and the stat file it is read from. */
#include "proc/id.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "child.h"
#include "proc/lock.h"

#define STAT_TAIL " S 1 2 3 0 -1 4194560 10 0 0 0 1 2 0 0 20 0 1 0 987654 1000 2 3\n"

static void stat_name_may_hold_blanks_and_parentheses(void **state)
{
	static const char text[] = "42 (a) R (b c)" STAT_TAIL;
	struct proc_stat st;

	(void)state;
	assert_int_equal(proc_stat_parse(view_str(text), &st), 0);
	assert_string_equal(st.comm, "a) R (b c");
	assert_int_equal(st.state, 'S');
	assert_int_equal(st.start_ticks, 987654);
	assert_int_equal(st.parent, 1);
	assert_int_equal(st.rss_bytes, 2 * sysconf(_SC_PAGESIZE));
	assert_false(st.kernel_thread);
	assert_false(proc_stat_is_dead(&st));
}

static void stat_name_loses_its_control_characters(void **state)
{
	static const char text[] = "42 (a\n\033[2Jb\302\233c)" STAT_TAIL;
	struct proc_stat st;

	(void)state;
	assert_int_equal(proc_stat_parse(view_str(text), &st), 0);
	assert_string_equal(st.comm, "a??[2Jb??c");
}

static void stat_tells_kernel_threads_and_the_dying(void **state)
{
	struct proc_stat st;

	(void)state;
	assert_int_equal(proc_stat_parse(view_str("2 (k) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 "
						  "1 0 9 0 0 0"),
					 &st),
			 0);
	assert_true(st.kernel_thread);
	assert_int_equal(
		proc_stat_parse(view_str("2 (k) Z 0 0 0 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 9"), &st),
		0);
	assert_int_equal(st.parent, 0);
	assert_int_equal(st.rss_bytes, 0);
	assert_true(st.exiting);
	assert_true(proc_stat_is_dead(&st));
}

static void stat_that_is_cut_short_is_malformed(void **state)
{
	static const char text[] = "42 (name)" STAT_TAIL;
	static const char *const wrong[] = {
		"",
		"(",
		")",
		")(",
		"42 name S 1",
		"42 (a) S -1 -1 -1 -1 -1 -1 0",
		"42 (a) SS 1 2 3 0 -1 4194560 10 0 0 0 1 2 0 0 20 0 1 0 987654",
		"42 (a) S 1 2 3 0 -1 4194560 10 0 0 0 1 2 0 0 20 0 1 0 99999999999999999999999",
	};
	struct proc_stat st;

	(void)state;
	for (size_t n = 0; n < strlen(text) - strlen("987654 1000 2 3\n"); n++)
		assert_int_equal(proc_stat_parse(view_of(text, n), &st), -EBADMSG);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(proc_stat_parse(view_str(wrong[i]), &st), -EBADMSG);
}

static void rename_strangely(void)
{
	(void)prctl(PR_SET_NAME, ") Z (1 2");
}

static void id_of_a_strangely_named_process_is_right(void **state)
{
	struct child c = child_start(rename_strangely, child_nothing);
	struct proc_id id, self;
	struct err err;

	(void)state;
	assert_int_equal(proc_id_of(c.pid, &id, &err), 0);
	assert_int_equal(proc_id_of(getpid(), &self, &err), 0);
	assert_int_equal(id.pid, c.pid);
	assert_true(id.start_ticks >= self.start_ticks);
	assert_true(proc_id_alive(&id));
	child_end(&c);
	assert_false(proc_id_alive(&id));
}

static void id_of_a_zombie_or_of_nobody_is_gone(void **state)
{
	struct child c = child_start(child_nothing, child_nothing);
	struct proc_id id = {.pid = 7}, alive;
	struct err err;

	(void)state;
	assert_int_equal(proc_id_of(c.pid, &alive, &err), 0);
	child_go(&c);
	child_wait_zombie(&c);
	assert_int_equal(proc_id_of(c.pid, &id, &err), -ESRCH);
	assert_non_null(strstr(err.text, "has exited"));
	assert_false(proc_id_alive(&alive));
	child_end(&c);
	assert_int_equal(proc_id_of(c.pid, &id, &err), -ESRCH);
	assert_non_null(strstr(err.text, "no such process"));
	assert_int_equal(proc_id_of(0, &id, &err), -ESRCH);
	assert_int_equal(proc_id_of(-1, &id, &err), -ESRCH);
	assert_int_equal(id.pid, 7);
}

/* A reused pid differs in nothing but the start time. */
static void id_with_another_start_time_is_not_alive(void **state)
{
	struct proc_id id;
	struct err err;

	(void)state;
	assert_int_equal(proc_id_of(getpid(), &id, &err), 0);
	id.start_ticks++;
	assert_false(proc_id_alive(&id));
}

/* A shell that says a word, waits for a line, executes itself, and does the same again. */
static pid_t shell_start(int *ret_in, int *ret_out)
{
	int in[2], out[2];
	pid_t pid;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)close(in[1]);
		(void)close(out[0]);
		(void)execl("/bin/sh", "sh", "-c",
			    "echo a; read x; exec /bin/sh -c 'echo b; read x'", (char *)NULL);
		_exit(1);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	*ret_in = in[1];
	*ret_out = out[0];
	return pid;
}

static void image_changes_when_a_program_executes_itself(void **state)
{
	struct proc_stat before, still, after;
	char word[2];
	int in, out;
	pid_t pid = shell_start(&in, &out);

	(void)state;
	assert_int_equal(read(out, word, 2), 2);
	assert_int_equal(proc_stat_read(pid, &before, NULL), 0);
	assert_int_equal(proc_stat_read(pid, &still, NULL), 0);
	assert_int_not_equal(before.image, 0);
	assert_int_equal(before.image, still.image);
	assert_int_equal(write(in, "\n", 1), 1);
	assert_int_equal(read(out, word, 2), 2);
	assert_int_equal(word[0], 'b');
	assert_int_equal(proc_stat_read(pid, &after, NULL), 0);
	assert_int_equal(before.start_ticks, after.start_ticks);
	assert_int_not_equal(before.image, after.image);
	(void)close(in);
	(void)close(out);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void one_of_us_at_a_time_is_at_work_on_a_process(void **state)
{
	struct proc_id id = {.pid = 42, .start_ticks = (uint64_t)getpid()}, later = id;
	int first = -1, other = -1, refused = -1;
	struct err err = {0};

	(void)state;
	assert_int_equal(proc_lock(&id, "test", &first, &err), 0);
	assert_int_equal(proc_lock(&id, "test", &refused, &err), -EBUSY);
	assert_int_equal(refused, -1);
	assert_non_null(strstr(err.text, "another sonde is working on process 42"));
	/* Other work, and another process with the same pid, are none of its business. */
	assert_int_equal(proc_lock(&id, "test-other", &other, &err), 0);
	(void)close(other);
	later.start_ticks++;
	assert_int_equal(proc_lock(&later, "test", &other, &err), 0);
	(void)close(other);
	(void)close(first);
	assert_int_equal(proc_lock(&id, "test", &first, &err), 0);
	(void)close(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_name_may_hold_blanks_and_parentheses),
		cmocka_unit_test(stat_name_loses_its_control_characters),
		cmocka_unit_test(stat_tells_kernel_threads_and_the_dying),
		cmocka_unit_test(stat_that_is_cut_short_is_malformed),
		cmocka_unit_test(image_changes_when_a_program_executes_itself),
		cmocka_unit_test(id_of_a_strangely_named_process_is_right),
		cmocka_unit_test(id_of_a_zombie_or_of_nobody_is_gone),
		cmocka_unit_test(id_with_another_start_time_is_not_alive),
		cmocka_unit_test(one_of_us_at_a_time_is_at_work_on_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
