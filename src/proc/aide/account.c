/* src/proc/aide/account.c: see account.h. */
#include "proc/aide/account.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define ACCOUNT_DEPTH_MAX 32 /* the kernel's own limit on nested user namespaces */

static bool is_ours(const struct stat *namespace)
{
	struct stat own;

	return stat("/proc/self/ns/user", &own) == 0 && own.st_ino == namespace->st_ino &&
	       own.st_dev == namespace->st_dev;
}

/* Of two that lie within each other, the outer one must not be ours. */
static int outermost(int inner)
{
	for (int depth = 0; depth < ACCOUNT_DEPTH_MAX; depth++) {
		_cleanup_close_ int outer = ioctl(inner, NS_GET_PARENT);
		struct stat st;

		if (outer < 0 || fstat(outer, &st) < 0 || is_ours(&st))
			break;
		close(inner);
		inner = TAKE_FD(outer);
	}
	return inner;
}

uid_t proc_aide_account(pid_t pid, uid_t uid)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	char path[48];
	uid_t owner;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (stat(path, &st) < 0 || is_ours(&st))
		return uid;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return uid;
	fd = outermost(fd);
	return ioctl(fd, NS_GET_OWNER_UID, &owner) < 0 ? uid : owner;
}
