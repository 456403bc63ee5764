/* tests/unit/proc/test_host.c: why something was refused. */
#include "proc/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool covered(const char *text, const char *path, const char *base, const char *wanted)
{
	char copy[1024], dir[64] = "";

	(void)strcpy(copy, text);
	return proc_host_parse_cover(copy, path, base, dir, sizeof(dir)) &&
	       strcmp(dir, wanted) == 0;
}

static void what_lies_over_a_file_is_found(void **state)
{
	static const char text[] = "20 1 0:5 / / rw - ext4 /dev/a rw\n"
				   "21 20 0:6 / /proc rw - proc proc rw\n"
				   "22 21 0:7 / /proc/kall rw - tmpfs x rw\n"
				   "23 20 0:8 / /sys rw - sysfs sysfs rw\n"
				   "24 23 0:9 / /sys/kernel rw - tmpfs x rw\n"
				   "25 24 0:9 / /sys/kernel/btf rw - tmpfs x rw\n"
				   "no line\n\n26\n";
	char empty[] = "", dir[8];

	(void)state;
	assert_false(covered(text, "/proc/kallsyms", "/proc", "/proc/kall"));
	assert_true(covered(text, "/proc/kall", "/proc", "/proc/kall"));
	assert_true(covered(text, "/proc/kall/x", "/proc", "/proc/kall"));
	/* The topmost is the one to take away. */
	assert_true(covered(text, "/sys/kernel/btf/vmlinux", "/sys", "/sys/kernel/btf"));
	assert_false(proc_host_parse_cover(empty, "/proc/x", "/proc", dir, sizeof(dir)));
}

/* What the check says in a child that has first lost something. */
struct verdict {
	int code;
	enum err_cause cause;
	bool own;
	char remedy[256];
};

static void in_a_child(void (*lose)(void), struct verdict *ret)
{
	struct verdict v = {};
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err = {};

		lose();
		v.code = proc_host_check_memory(&v.own, &err);
		v.cause = err.cause;
		memcpy(v.remedy, err.remedy, sizeof(v.remedy));
		_exit(write(ends[1], &v, sizeof(v)) != sizeof(v));
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], ret, sizeof(*ret)), sizeof(*ret));
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void lose_nothing(void)
{
}

static void lose_root(void)
{
	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
		_exit(1);
	/* It is gone with the change of users, and /proc/self with it. */
	(void)prctl(PR_SET_DUMPABLE, 1);
}

static void lose_the_host(void)
{
	if (unshare(CLONE_NEWUSER) < 0)
		_exit(1);
}

static void memory_can_be_read_by_root_alone(void **state)
{
	struct verdict v;

	(void)state;
	if (geteuid() != 0)
		skip();
	in_a_child(lose_nothing, &v);
	assert_int_equal(v.code, 0);
	in_a_child(lose_root, &v);
	assert_int_equal(v.code, -EPERM);
	assert_int_equal(v.own, proc_host_ptrace_scope() == 0);
	assert_int_equal(v.cause, v.own ? ERR_CAUSE_PRIVILEGE : ERR_CAUSE_PTRACE_SCOPE);
	assert_non_null(strstr(v.remedy, "root"));
	in_a_child(lose_the_host, &v);
	assert_int_equal(v.code, -EPERM);
	assert_int_equal(v.cause, ERR_CAUSE_USER_NAMESPACE);
}

static void hidden_processes_are_told_by_the_mount_of_proc(void **state)
{
	static const struct {
		const char *text;
		bool hides;
	} cases[] = {
		{"", false},
		{"24 1 0:22 / /proc rw,relatime - proc proc rw\n", false},
		{"24 1 0:22 / /proc rw,relatime - proc proc rw,hidepid=0\n", false},
		{"24 1 0:22 / /proc rw,relatime - proc proc rw,hidepid=off\n", false},
		{"24 1 0:22 / /proc rw,relatime - proc proc rw,hidepid=2,gid=4\n", true},
		{"24 1 0:22 / /proc rw,relatime - proc proc rw,hidepid=invisible\n", true},
		/* Another place, another type; and what lies over it. */
		{"24 1 0:22 / /srv/proc rw - proc proc rw,hidepid=2\n", false},
		{"24 1 0:22 / /proc rw - tmpfs hidepid=2 rw\n", false},
		{"24 1 0:22 / /proc rw - proc proc rw,hidepid=2\n"
		 "25 1 0:23 / /proc rw - proc proc rw\n",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(proc_host_parse_hidepid(cases[i].text), cases[i].hides);
}

static void proc_is_there_and_says_what_we_may(void **state)
{
	(void)state;
	assert_int_equal(proc_host_check_proc(NULL), 0);
	assert_false(proc_host_has_cap(63));
	if (geteuid() == 0 && !proc_host_is_user_namespace())
		assert_true(proc_host_has_cap(CAP_CHOWN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_over_a_file_is_found),
		cmocka_unit_test(hidden_processes_are_told_by_the_mount_of_proc),
		cmocka_unit_test(memory_can_be_read_by_root_alone),
		cmocka_unit_test(proc_is_there_and_says_what_we_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
