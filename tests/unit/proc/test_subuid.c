/* tests/unit/proc/test_subuid.c: many ids of one user are one. */
#include "proc/subuid.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void ids_of_a_range_are_one_user(void **state)
{
	static struct proc_subuids s;

	(void)state;
	proc_subuids_parse(&s, "ann:100000:65536\nbob:165536:65536\nann:300000:10\n");
	assert_int_equal(s.len, 3);
	assert_int_equal(proc_subuids_owner(&s, 100000), 100000);
	assert_int_equal(proc_subuids_owner(&s, 165535), 100000);
	assert_int_equal(proc_subuids_owner(&s, 165536), 165536);
	assert_int_equal(proc_subuids_owner(&s, 170000), 165536);
	assert_int_equal(proc_subuids_owner(&s, 300009), 100000);
	assert_int_equal(proc_subuids_owner(&s, 300010), 300010);
	assert_int_equal(proc_subuids_owner(&s, 0), 0);
	assert_int_equal(proc_subuids_owner(&s, 65534), 65534);
	assert_int_equal(proc_subuids_owner(&s, UINT32_MAX), UINT32_MAX);
}

/* Or whoever has been given ids would have one share more than others. */
static void a_user_and_its_ids_are_one_owner(void **state)
{
	static struct proc_subuids s;

	(void)state;
	proc_subuids_parse(&s, "ann:100000:65536\nbob:165536:65536\n1002:300000:10\nann:400000:10\n"
			       "root:500000:10\n0:600000:10\n");
	proc_subuids_parse_users(&s, "root:x:0:0:root:/root:/bin/sh\n:x:9::\nann\nann:x:oops:\n"
				     "ann:x:1000:1000:Ann:/home/ann:/bin/sh\ncyd:x:1003:1:::\n");
	assert_int_equal(proc_subuids_owner(&s, 1000), 1000);
	assert_int_equal(proc_subuids_owner(&s, 100001), 1000);
	assert_int_equal(proc_subuids_owner(&s, 400009), 1000);
	/* By number; and one whose own id is not known. */
	assert_int_equal(proc_subuids_owner(&s, 300001), 1002);
	assert_int_equal(proc_subuids_owner(&s, 165537), 165536);
	/* What root gives to a container is less than root. */
	assert_int_equal(proc_subuids_owner(&s, 500001), 500000);
	assert_int_equal(proc_subuids_owner(&s, 600001), 600000);
}

static void lines_that_are_no_ranges_are_skipped(void **state)
{
	static struct proc_subuids s;

	(void)state;
	proc_subuids_parse(&s, "\n# comment\n:1:2\nann\nann:\nann:x:5\nann:5\nann:5:\nann:5:-1\n"
			       "ann:99999999999:5\nann:0:65536\nann:5:0\nann:5:6 7\nbob:200000:9");
	assert_int_equal(s.len, 1);
	assert_int_equal(proc_subuids_owner(&s, 200008), 200000);
	proc_subuids_read(&s, "/nonexistent/subuid", "/nonexistent/passwd");
	assert_int_equal(s.len, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_of_a_range_are_one_user),
		cmocka_unit_test(a_user_and_its_ids_are_one_owner),
		cmocka_unit_test(lines_that_are_no_ranges_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
