/* src/proc/public.c: see public.h. */
#include "proc/public.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "proc/aide/aides.h"
#include "proc/aide/rights.h"
#include "proc/file.h"

/* Not 65534: that one has processes and files. */
#define PUBLIC_NOBODY ((uid_t)-2)
/* Whoever's group is the file's is somebody, too. */
#define PUBLIC_MODE (S_IRGRP | S_IROTH)

/* Links on the way are followed: they lead no further than these rights do. */
static int public_find(int root, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* It is open for reading already: what it was when that was allowed, it still is. */
static int public_check(int ours, int theirs, size_t max, int64_t *ret_modified_ns)
{
	struct stat st, seen;

	if (fstat(ours, &st) < 0 || fstat(theirs, &seen) < 0)
		return -errno;
	if (st.st_dev != seen.st_dev || st.st_ino != seen.st_ino)
		return -EXDEV;
	if ((st.st_mode & PUBLIC_MODE) != PUBLIC_MODE)
		return -EACCES;
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return -E2BIG;
	*ret_modified_ns = (int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_SEC + st.st_mtim.tv_nsec;
	return 0;
}

/* With nobody's rights. */
static int public_open(int our_root, int their_root, const char *path, int *ret_fd, int *ret_theirs)
{
	_cleanup_close_ int found = public_find(our_root, path), theirs = -1;
	int r = found < 0 ? found : proc_file_reopen(found, ret_fd);

	if (r < 0)
		return r;
	theirs = public_find(their_root, path);
	if (theirs < 0)
		return -EXDEV;
	*ret_theirs = TAKE_FD(theirs);
	return 0;
}

int proc_public_read_here(pid_t pid, const char *path, struct buf *text, int64_t *ret_modified_ns)
{
	const struct proc_status nobody = {.fsuid = PUBLIC_NOBODY, .fsgid = PUBLIC_NOBODY};
	_cleanup_close_ int our_root = -1, their_root = -1, fd = -1, theirs = -1;
	struct proc_rights *own = NULL;
	int64_t modified_ns = 0;
	char link[48];
	int r;

	if (path[0] != '/')
		return -EINVAL;
	(void)snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	our_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (our_root < 0)
		return -errno;
	their_root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (their_root < 0)
		return errno == ENOENT ? -ESRCH : -EPERM;
	r = proc_rights_take(&nobody, &own);
	if (r < 0)
		return r;
	r = public_open(our_root, their_root, path, &fd, &theirs);
	proc_rights_return(own);
	if (r == 0)
		r = public_check(fd, theirs, (text->max ? text->max : BUF_DEFAULT_MAX) - text->len,
				 &modified_ns);
	if (r == 0)
		r = io_read_all(fd, text);
	if (r == 0)
		*ret_modified_ns = modified_ns;
	return r;
}

int proc_public_read(pid_t pid, const char *path, struct buf *text, int64_t *ret_modified_ns)
{
	return proc_aides_are_on() ? proc_aides_read_public(pid, path, text, ret_modified_ns)
				   : proc_public_read_here(pid, path, text, ret_modified_ns);
}
