/* tests/unit/proc/test_status.c: whose process it is, as the kernel tells. */
#include "proc/status.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "child.h"

static void hear(int signal_number)
{
	(void)signal_number;
}

/* With a name that looks like a field. */
static void become_somebody(void)
{
	static const gid_t groups[] = {4, 24};

	if (prctl(PR_SET_NAME, "a\nNSpid:\t1\n") < 0 || signal(SIGUSR1, hear) == SIG_ERR ||
	    setgroups(ARRAY_SIZE(groups), groups) < 0 || setresgid(5, 6, 7) < 0 ||
	    setresuid(1000, 1001, 1002) < 0)
		_exit(77);
}

static void a_status_is_read_from_its_own_fields(void **state)
{
	struct child c = child_start(become_somebody, child_nothing);
	struct proc_status s = {};

	(void)state;
	assert_int_equal(proc_status_read(c.pid, &s, NULL), 0);
	assert_int_equal(s.inner_pid, c.pid);
	assert_int_equal(s.uid, 1000);
	assert_int_equal(s.euid, 1001);
	assert_int_equal(s.suid, 1002);
	assert_int_equal(s.fsuid, 1001);
	assert_int_equal(s.egid, 6);
	assert_int_equal(s.fsgid, 6);
	assert_int_equal(s.n_groups, 2);
	assert_int_equal(s.groups[1], 24);
	assert_true(s.caught & 1ULL << (SIGUSR1 - 1));
	assert_false(s.caught & 1ULL << (SIGUSR2 - 1));
	child_end(&c);
}

static void we_know_ourselves(void **state)
{
	struct proc_status s;
	struct err err;

	(void)state;
	assert_int_equal(proc_status_read(getpid(), &s, &err), 0);
	assert_int_equal(s.euid, geteuid());
	assert_int_equal(s.egid, getegid());
	assert_int_equal(s.n_groups, getgroups(0, NULL));
	assert_int_equal(s.state, 'R');
	assert_int_equal(proc_status_read(0x7ffffff0, &s, &err), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_is_read_from_its_own_fields),
		cmocka_unit_test(we_know_ourselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
