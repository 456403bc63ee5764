/* tests/unit/proc/test_status.c: whose process it is, from texts right and wrong. */
#include "proc/status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void a_status_is_read_from_its_own_fields(void **state)
{
	/* The target chose its name. */
	static const char text[] = "Name:\tNSpid:\t1\nState:\tS (sleeping)\nTgid:\t77\n"
				   "Uid:\t0\t1000\t2\t3\nGid:\t5\t6\t7\t8\nGroups:\t4 24 \n"
				   "NSpid:\t77\t12\t3\nSigCgt:\t2000000181005ccf\n";
	struct proc_status s = {};

	(void)state;
	assert_int_equal(proc_status_parse(text, &s), 0);
	assert_int_equal(s.inner_pid, 3);
	assert_int_equal(s.uid, 0);
	assert_int_equal(s.euid, 1000);
	assert_int_equal(s.suid, 2);
	assert_int_equal(s.fsuid, 3);
	assert_int_equal(s.egid, 6);
	assert_int_equal(s.fsgid, 8);
	assert_int_equal(s.n_groups, 2);
	assert_int_equal(s.groups[1], 24);
	assert_int_equal(s.state, 'S');
	assert_int_equal(s.caught, 0x2000000181005ccf);
	for (size_t cut = 0; cut + 18 < sizeof(text); cut++) {
		_cleanup_free_ char *part = strndup(text, cut);

		assert_non_null(part);
		assert_int_equal(proc_status_parse(part, &s), -EBADMSG);
	}
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
