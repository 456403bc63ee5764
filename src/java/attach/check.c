/* src/java/attach/check.c: the checks before a JVM gets a signal. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "java/attach/state.h"

/*
 * Without counters, only the command line and the environment are left to check. The option may
 * also come from a file; then the JVM prints its threads, once.
 */
static bool check_is_disabled(pid_t pid)
{
	static const char option[] = "-XX:+DisableAttachMechanism";
	_cleanup_(buf_release) struct buf args = {};
	_cleanup_(buf_release) struct buf env = {};

	java_target_read_words(pid, "cmdline", &args);
	java_target_read_words(pid, "environ", &env);
	return java_target_has_word(&args, option) || java_target_has_word(&env, option);
}

static int check_commands(const struct java_vm *vm, struct err *err)
{
	int pid = (int)vm->id.pid;

	if (vm->kind != JAVA_HOTSPOT)
		return err_lack(err, -ENOTSUP, vm->cause, "", "process %d runs %s: %s", pid,
				vm->name, vm->reason);
	if (vm->commands == JAVA_COMMANDS_NOT_YET)
		return err_set(err, -EAGAIN, "the JVM of process %d is still starting", pid);
	if (vm->commands == JAVA_COMMANDS_NO ||
	    (vm->commands == JAVA_COMMANDS_UNKNOWN && check_is_disabled(vm->id.pid)))
		return err_lack(err, -ENOTSUP, ERR_CAUSE_UNSUPPORTED,
				"start it without -XX:+DisableAttachMechanism",
				"the JVM of process %d does not accept commands", pid);
	return 0;
}

static int check_signal(const struct java_target *t, struct err *err)
{
	int pid = (int)t->id.pid;
	int r = java_target_check_stopped(t, err);

	if (r < 0)
		return r;
	if (!(t->status.caught >> (SIGQUIT - 1) & 1))
		return err_set(err, -EAGAIN,
			       "process %d does not handle SIGQUIT and would be killed by it: its "
			       "JVM is still starting, or was started with -Xrs",
			       pid);
	return 0;
}

/* Whether the JVM can create its socket there. */
static int check_tmp(const struct java_attach *a, struct err *err)
{
	int pid = (int)a->target.id.pid;
	struct stat st;

	if (fstat(a->tmp, &st) < 0)
		return err_set(err, -errno, "process %d: cannot access its /tmp", pid);
	/*
	 * Its supplementary groups are unknown: assume that a group with write permission is one.
	 */
	if (a->target.status.euid != 0 && !(st.st_mode & (S_IWOTH | S_IWGRP)) &&
	    !(st.st_uid == a->target.status.euid && st.st_mode & S_IWUSR))
		return err_set(err, -ENOTSUP,
			       "process %d cannot write to its /tmp, where its JVM creates the "
			       "attach socket",
			       pid);
	return 0;
}

int java_attach_check(const struct java_attach *a, struct err *err)
{
	int r = check_commands(&a->vm, err);

	if (r == 0)
		r = check_signal(&a->target, err);
	if (r == 0)
		r = check_tmp(a, err);
	return r < 0 ? r : java_attach_can_be(&a->target, err);
}
