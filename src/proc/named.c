/* src/proc/named.c: see named.h. */
#include "proc/named.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/aide/aides.h"
#include "proc/aide/rights.h"
#include "proc/file.h"

static int named_find_below(int root, const char *dir, const char *name)
{
	const struct open_how to_dir = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	const struct open_how to_file = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	_cleanup_close_ int at = (int)syscall(SYS_openat2, root, dir, &to_dir, sizeof(to_dir));
	int fd = at < 0 ? -1 : (int)syscall(SYS_openat2, at, name, &to_file, sizeof(to_file));

	return fd < 0 ? -errno : fd;
}

/* Whether its rights, which this thread has taken, are enough to read it. */
static int named_check(int path_fd)
{
	struct stat st;

	if (io_stat(path_fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	/* The C library would ask for the effective user, where the kernel has one for files. */
	return syscall(SYS_faccessat2, path_fd, "", R_OK, AT_EACCESS | AT_EMPTY_PATH) < 0 ? -errno
											  : 0;
}

/* Our own rights lead to its root directory; from there on its rights apply. */
int proc_named_find(pid_t pid, const char *dir, const char *name, int *ret_path_fd)
{
	_cleanup_close_ int root = -1, fd = -1;
	struct proc_rights *own = NULL;
	struct proc_status status;
	char link[48];
	int r = proc_status_read(pid, &status, NULL);

	if (r < 0)
		return r;
	(void)snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	r = proc_rights_take(&status, &own);
	if (r < 0)
		return r;
	r = fd = named_find_below(root, dir, name);
	if (r >= 0)
		r = named_check(fd);
	proc_rights_return(own);
	if (r < 0)
		return r;
	*ret_path_fd = TAKE_FD(fd);
	return 0;
}

int proc_named_open(pid_t pid, const char *dir, const char *name, int *ret_fd)
{
	struct proc_aides_target target;
	_cleanup_close_ int fd = -1;
	int r;

	if (proc_aides_are_on()) {
		r = proc_aides_find(pid, &target);
		return r < 0 ? r : proc_aides_open_named(&target, dir, name, ret_fd);
	}
	r = proc_named_find(pid, dir, name, &fd);
	return r < 0 ? r : proc_file_reopen(fd, ret_fd);
}
