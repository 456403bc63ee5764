/* src/proc/aide/account.c: see account.h. */
#include "proc/aide/account.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

#define ACCOUNT_DEPTH_MAX 32 /* the kernel's own limit on nested user namespaces */
#define ACCOUNT_MAP_MAX ((size_t)64 << 10)

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

int proc_aide_account(pid_t pid, uid_t *ret_uid)
{
	_cleanup_close_ int fd = -1;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	fd = outermost(fd);
	return ioctl(fd, NS_GET_OWNER_UID, ret_uid) < 0 ? -errno : 0;
}

bool proc_aide_account_maps_ids(const char *uid_map)
{
	char *at;
	uint64_t inside = strtoull(uid_map, &at, 10), outside = strtoull(at, &at, 10);
	uint64_t n = strtoull(at, &at, 10);

	if (strspn(at, " \n") < strlen(at))
		return true;
	return n > 1 && !(inside == outside && n == UINT32_MAX);
}

/* By text: the link to its namespace would have us wait while it is inside an exec. */
bool proc_aide_account_has_ids(pid_t pid)
{
	_cleanup_(buf_release) struct buf its = buf_with_max(ACCOUNT_MAP_MAX);
	_cleanup_(buf_release) struct buf ours = buf_with_max(ACCOUNT_MAP_MAX);
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	if (io_read_file(AT_FDCWD, path, &its, NULL) < 0 || !buf_cstr(&its) ||
	    !proc_aide_account_maps_ids(buf_cstr(&its)))
		return false;
	return io_read_file(AT_FDCWD, "/proc/self/uid_map", &ours, NULL) < 0 ||
	       !view_eq(buf_view(&its), buf_view(&ours));
}
