/* tests/unit/proc/test_caps.c: giving up privileges. Needs root; skipped without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/caps.h"
#include "proc/host.h"

static void *drop(void *arg)
{
	uint64_t *kept = arg;

	if (proc_caps_keep(*kept, NULL) == 0)
		*kept = proc_caps_now() | (uint64_t)prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) << 63;
	return NULL;
}

static void one_thread_gives_up_and_others_do_not(void **state)
{
	const uint64_t wanted = PROC_CAP(CAP_SYS_PTRACE) | PROC_CAP(CAP_BPF);
	uint64_t before = proc_caps_now(), kept = wanted;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, drop, &kept), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(kept == (wanted | 1ULL << 63));
	assert_true(proc_caps_now() == before);
	assert_true(proc_host_has_cap(CAP_CHOWN));
	assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}

static void no_program_brings_them_back(void **state)
{
	_cleanup_(buf_release) struct buf text = {};
	int pipes[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (proc_caps_keep(PROC_CAP(CAP_SYS_PTRACE), NULL) < 0 || dup2(pipes[1], 1) < 0)
			_exit(1);
		(void)execl("/bin/grep", "grep", "-E", "^(CapEff|CapBnd|NoNewPrivs)",
			    "/proc/self/status", (char *)NULL);
		_exit(1);
	}
	close(pipes[1]);
	assert_int_equal(io_read_all(pipes[0], &text), 0);
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(buf_cstr(&text),
			    "CapEff:\t0000000000080000\nCapBnd:\t0000000000080000\n"
			    "NoNewPrivs:\t1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_gives_up_and_others_do_not),
		cmocka_unit_test(no_program_brings_them_back),
	};

	if (geteuid() != 0 || !proc_host_has_cap(CAP_SETPCAP))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
