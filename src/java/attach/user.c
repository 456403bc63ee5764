/*
 * src/java/attach/user.c: see user.h. Uses raw system calls, which affect this thread only:
 * the C library's functions would change all threads.
 */
#include "java/attach/user.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The group first: without root we could not change it. */
static int self_set(uid_t euid, gid_t egid)
{
	if (syscall(SYS_setresgid, -1, egid, -1) < 0)
		return -errno;
	return syscall(SYS_setresuid, -1, euid, -1) < 0 ? -errno : 0;
}

/* Always succeeds. If not, abort: going on as another user would be worse. */
void java_user_return(const struct java_user *self)
{
	if (!self->changed)
		return;
	if (syscall(SYS_setresuid, -1, self->euid, -1) < 0 ||
	    syscall(SYS_setresgid, -1, self->egid, -1) < 0)
		abort();
	/* The kernel clears it with each change, for the whole process. */
	if (self->dumpable == 1)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

int java_user_become(const struct java_target *target, struct java_user *ret_self)
{
	struct java_user self = {
		.euid = geteuid(),
		.egid = getegid(),
		.dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0),
	};

	/* A process that only has capabilities would lose them when returning from root. */
	if (self.euid != 0 && target->status.euid == 0)
		return -EPERM;
	self.changed = self.euid != target->status.euid || self.egid != target->status.egid;
	if (self.changed && self_set(target->status.euid, target->status.egid) < 0) {
		java_user_return(&self);
		return -EPERM;
	}
	*ret_self = self;
	return 0;
}
