/*
 * src/cpu/symbols/perfmap_open.c: finds the perf map of a process. The target controls that file,
 * and so does anyone who can write to its /tmp.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "cpu/symbols/perfmap.h"
#include "proc/file.h"

struct perfmap_owner {
	uid_t uid;
	pid_t pid; /* the pid in its own namespace */
};

/* The value after "name:\t" at the start of a line, up to the end of the line. */
static bool perfmap_field(const char *text, const char *name, char *dst, size_t cap)
{
	const char *line = strstr(text, name);
	size_t n;

	if (!line)
		return false;
	line += strlen(name);
	n = MIN(strcspn(line, "\n"), cap - 1);
	memcpy(dst, line, n);
	dst[n] = 0;
	return true;
}

/*
 * "Uid: real effective saved fs", and "NSpid: 4711 12": the pid in each namespace, innermost last.
 * Search with the preceding newline, because the target chose the name in the first line.
 */
static int perfmap_owner(pid_t pid, struct perfmap_owner *ret)
{
	struct buf text = buf_with_max((size_t)64 << 10);
	char path[48], uids[128] = "", pids[256] = "";
	const char *s, *uid, *last;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	s = io_read_file(AT_FDCWD, path, &text, NULL) < 0 ? NULL : buf_cstr(&text);
	if (!s || !perfmap_field(s, "\nUid:\t", uids, sizeof(uids)) ||
	    !perfmap_field(s, "\nNSpid:\t", pids, sizeof(pids)))
		pids[0] = 0;
	buf_release(&text);
	uid = strchr(uids, '\t');
	last = strrchr(pids, '\t');
	if (!uid)
		return -ESRCH;
	ret->uid = (uid_t)strtoul(uid + 1, NULL, 10);
	ret->pid = (pid_t)strtol(last ? last + 1 : pids, NULL, 10);
	return ret->pid > 0 ? 0 : -ESRCH;
}

/* Finds the name only: never open it before it is known to be a regular file. */
static int perfmap_find(pid_t pid, const struct perfmap_owner *owner)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int root = -1;
	char path[48];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)owner->pid);
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

int cpu_perfmap_open(pid_t pid, struct cpu_perfmap **ret_map, struct err *err)
{
	_cleanup_close_ int found = -1;
	struct perfmap_owner owner;
	char path[48];
	struct stat st;
	int r, fd;

	r = perfmap_owner(pid, &owner);
	if (r < 0)
		return err_set(err, r, "process %d has exited", (int)pid);
	found = perfmap_find(pid, &owner);
	if (found < 0)
		return err_set(err, -ENOENT, "process %d has no perf map", (int)pid);
	if (fstat(found, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (st.st_uid != owner.uid && st.st_uid != 0))
		return err_set(err, -EPERM,
			       "process %d: /tmp/perf-%d.map is not a regular file of its user",
			       (int)pid, (int)owner.pid);
	if (!(st.st_mode & S_IRUSR))
		return err_set(err, -EAGAIN, "process %d: /tmp/perf-%d.map is being written",
			       (int)pid, (int)owner.pid);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	r = proc_file_open_path(path, &fd, NULL);
	if (r < 0)
		return err_set(err, -EPERM, "process %d: cannot open /tmp/perf-%d.map: %s",
			       (int)pid, (int)owner.pid, strerror(-r));
	return cpu_perfmap_open_take(fd, ret_map, err);
}
