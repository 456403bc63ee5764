/* tests/unit/bpf/test_kernel.c: what the kernel refuses is explained. */
#include "bpf/kernel.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_refused_bpf_call_is_explained_by_what_is_missing(void **state)
{
	struct err err = {};

	(void)state;
	assert_int_equal(bpf_kernel_explain("bpf()", -EACCES, &err), -EPERM);
	assert_non_null(strstr(err.text, "bpf()"));
	assert_true(err.remedy[0]);
	assert_int_equal(bpf_kernel_explain("bpf()", -ENOSYS, &err), -ENOTSUP);
	assert_true(err.cause == ERR_CAUSE_KERNEL || err.cause == ERR_CAUSE_SECCOMP);
	assert_int_equal(bpf_kernel_explain("bpf()", -E2BIG, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, strerror(E2BIG)));
	/* Nobody is there to hear. */
	assert_int_equal(bpf_kernel_explain("bpf()", -EPERM, NULL), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_bpf_call_is_explained_by_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
