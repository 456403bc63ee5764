/* src/proc/file.c: see file.h. */
#include "proc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/aide/aides.h"
#include "proc/text.h"

/* Files on these file systems look regular, but reading one can block or have side effects. */
static bool file_is_pseudo(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
	       fs.f_type == DEBUGFS_MAGIC || fs.f_type == TRACEFS_MAGIC;
}

/*
 * Reopens an O_PATH descriptor, which has opened nothing yet, for reading. Going through the
 * descriptor leaves no window in which the name could change its meaning.
 */
int proc_file_reopen(int path_fd, int *ret_fd)
{
	struct stat st;
	char link[64];
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || file_is_pseudo(path_fd))
		return -EINVAL;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static bool file_same_inode(int fd, const struct proc_map *map, bool *ret_same_dev)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_ino != map->inode)
		return false;
	*ret_same_dev = st.st_dev == map->dev;
	return true;
}

/*
 * The kernel's own link to the mapped file. On overlayfs and btrfs the device in maps differs from
 * stat's, so only the inode is compared. It guards against a mapping replaced after the caller read
 * the maps.
 */
static int file_try_map_files(pid_t pid, const struct proc_map *map, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	bool same_dev;
	char link[96];

	(void)snprintf(link, sizeof(link), "/proc/%d/map_files/%jx-%jx", (int)pid,
		       (uintmax_t)map->start, (uintmax_t)map->end);
	fd = open(link, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!file_same_inode(fd, map, &same_dev))
		return -ESTALE;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* If devices cannot be compared, the name must match the executable's as well. */
static int file_try_exe(pid_t pid, const struct proc_map *map, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char link[64], name[PATH_MAX];
	bool same_dev;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	fd = open(link, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!file_same_inode(fd, map, &same_dev))
		return -ESTALE;
	if (!same_dev) {
		n = readlink(link, name, sizeof(name));
		if (n < 0 || !view_eq(view_of(name, (size_t)n), view_str(map->path)))
			return -ESTALE;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* By name, as the target sees it: its links cannot leave its root directory. */
static int file_try_root(pid_t pid, const struct proc_map *map, int *ret_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int root = -1, fd = -1;
	bool same_dev;
	char link[64];

	if (map->flags & PROC_MAP_DELETED)
		return -ENOENT;
	(void)snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, map->path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (!file_same_inode(fd, map, &same_dev) || !same_dev)
		return -ESTALE;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* The three ways fail for different reasons; report the last meaningful one. */
static int file_failed(const struct proc_map *map, const char *who, int code, struct err *err)
{
	char path[256];

	proc_text_copy(path, sizeof(path), view_str(map->path));
	switch (code) {
	case -ESTALE:
		return err_set(err, -ESTALE, "%s: the file %s is no longer the mapped one", who,
			       path);
	case -EACCES:
	case -EPERM:
		return err_lack(err, -EPERM, ERR_CAUSE_DENIED,
				"run as root, or with CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE",
				"%s: not enough permissions to open %s", who, path);
	case -EINVAL:
		return err_set(err, -EINVAL, "%s: %s is not a regular file", who, path);
	case -ETIMEDOUT:
	case -EBUSY:
		return err_lack(err, -ETIMEDOUT, ERR_CAUSE_NO_ANSWER, "",
				"%s: the file system of %s is not responding", who, path);
	default:
		return err_set(err, code, "%s: cannot open %s: %s", who, path, strerror(-code));
	}
}

int proc_file_find_mapped(pid_t pid, const struct proc_map *map, int *ret_path_fd)
{
	int r, first = file_try_map_files(pid, map, ret_path_fd);

	if (first == 0 || file_try_exe(pid, map, ret_path_fd) == 0)
		return 0;
	r = file_try_root(pid, map, ret_path_fd);
	/* A deleted file is reachable only through map_files: its error is the reason. */
	return r < 0 && map->flags & PROC_MAP_DELETED ? first : r;
}

static int file_open_mapped_here(pid_t pid, const struct proc_map *map, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	int r = proc_file_find_mapped(pid, map, &fd);

	return r < 0 ? r : proc_file_reopen(fd, ret_fd);
}

int proc_file_open_mapped(pid_t pid, const struct proc_map *map, int *ret_fd, struct err *err)
{
	struct proc_aides_target target;
	char who[32];
	int r;

	(void)snprintf(who, sizeof(who), "process %d", (int)pid);
	if (map->inode == 0 || map->path[0] != '/')
		return err_set(err, -ENOENT, "%s: no file is mapped at 0x%jx", who,
			       (uintmax_t)map->start);
	if (!proc_aides_are_on())
		r = file_open_mapped_here(pid, map, ret_fd);
	else if ((r = proc_aides_find(pid, &target)) == 0)
		r = proc_aides_open_mapped(&target, map, ret_fd);
	return r < 0 ? file_failed(map, who, r, err) : 0;
}

/*
 * Follows symbolic links: the author of the core could have named their target as well, and /lib
 * may be a link here but a directory where the core comes from.
 */
int proc_file_open_path(const char *path, int *ret_fd, struct err *err)
{
	struct proc_map named = {.path = path};
	_cleanup_close_ int fd = -1;
	int r;

	if (path[0] != '/')
		return err_set(err, -ENOENT, "the core names no file there");
	fd = open(path, O_PATH | O_CLOEXEC);
	r = fd < 0 ? -errno : proc_file_reopen(fd, ret_fd);
	return r < 0 ? file_failed(&named, "file named by the core", r, err) : 0;
}
