/*
 * src/proc/aide/foreign.c: see foreign.h.
 *
 * Users may mount overlayfs in namespaces of their own, on layers that they serve, and hand its
 * files to processes outside. So the user namespace of a process says nothing about its files. What
 * does: in a mount namespace that belongs to our user namespace nobody without rights can mount.
 */
#include "proc/aide/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/io.h"

#define FOREIGN_MOUNTS_MAX ((size_t)1 << 20)
#define XFS_MAGIC 0x58465342
#define ZFS_MAGIC 0x2fc12fc1

static bool has_our_mounts(pid_t pid)
{
	_cleanup_close_ int mounts = -1, owner = -1;
	struct stat own, its;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	mounts = open(path, O_RDONLY | O_CLOEXEC);
	owner = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
	return owner >= 0 && fstat(owner, &its) == 0 && stat("/proc/self/ns/user", &own) == 0 &&
	       own.st_ino == its.st_ino && own.st_dev == its.st_dev;
}

bool proc_aide_has_mount(const char *mountinfo, uint64_t mount_id)
{
	for (const char *line = mountinfo; line; line = strchr(line, '\n')) {
		char *end;

		line += *line == '\n';
		if (strtoull(line, &end, 10) == mount_id && end > line && *end == ' ')
			return true;
	}
	return false;
}

/* Whether the file lies where the process could open it by name. */
static bool is_mounted_there(int fd, pid_t pid)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(FOREIGN_MOUNTS_MAX);
	const char *mounts = NULL;
	struct statx st;
	char path[48];
	int r;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0 ||
	    !(st.stx_mask & STATX_MNT_ID))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	r = io_read_file(AT_FDCWD, path, &text, NULL);
	if (r == 0 || r == -E2BIG)
		mounts = buf_cstr(&text);
	return mounts && proc_aide_has_mount(mounts, st.stx_mnt_id);
}

bool proc_aide_is_foreign(int fd, pid_t pid)
{
	static const long local[] = {EXT4_SUPER_MAGIC,	   XFS_MAGIC,	     BTRFS_SUPER_MAGIC,
				     TMPFS_MAGIC,	   F2FS_SUPER_MAGIC, ZFS_MAGIC,
				     EROFS_SUPER_MAGIC_V1, SQUASHFS_MAGIC,   RAMFS_MAGIC,
				     HUGETLBFS_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if ((long)fs.f_type == local[i])
			return false;
	return fs.f_type != OVERLAYFS_SUPER_MAGIC || !has_our_mounts(pid) ||
	       !is_mounted_there(fd, pid);
}
