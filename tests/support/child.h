/* tests/support/child.h: real processes to read: children that do one thing when told. */
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/stat.h"

struct child {
	pid_t pid;
	int go; /* a byte written here lets the child go on */
};

/* What a child does once it is told to; it exits when this returns. */
typedef void (*child_fn)(void);

static inline void child_nothing(void)
{
}

/* Runs before() at once and after() when told; returns when before() is done. */
static inline struct child child_start(child_fn before, child_fn after)
{
	int go[2], ready[2];
	struct child c;
	char byte = 0;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(ready), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		close(go[1]);
		close(ready[0]);
		before();
		if (write(ready[1], "r", 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(1);
		after();
		_exit(0);
	}
	close(go[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	c.go = go[1];
	return c;
}

static inline void child_go(struct child *c)
{
	assert_int_equal(write(c->go, "g", 1), 1);
	close(c->go);
	c->go = -1;
}

static inline void child_end(struct child *c)
{
	if (c->go >= 0)
		close(c->go);
	(void)kill(c->pid, SIGKILL);
	(void)waitpid(c->pid, NULL, 0);
}

static inline void child_nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Until the child is a zombie. */
static inline void child_wait_zombie(const struct child *c)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT), 0);
}

/* Until the child runs a program of that name. */
static inline void child_wait_comm(const struct child *c, const char *comm)
{
	struct proc_stat st;

	for (int i = 0; i < 100000; i++) {
		if (proc_stat_read(c->pid, &st, NULL) == 0 && strcmp(st.comm, comm) == 0)
			return;
		child_nap();
	}
	fail_msg("the child never became %s", comm);
}
