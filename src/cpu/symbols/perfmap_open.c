/*
 * src/cpu/symbols/perfmap_open.c: opens the perf map of a process. The target controls that file,
 * and so does anyone who can write to its /tmp.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cpu/symbols/perfmap.h"
#include "proc/named.h"
#include "proc/status.h"

int cpu_perfmap_open(pid_t pid, struct cpu_perfmap **ret_map, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct proc_status status;
	struct stat st;
	char name[32];
	int r = proc_status_read(pid, &status, NULL);

	if (r < 0)
		return err_set(err, r, "process %d has exited", (int)pid);
	(void)snprintf(name, sizeof(name), "perf-%d.map", (int)status.inner_pid);
	r = proc_named_open(pid, "/tmp", name, &fd);
	if (r == -ENOENT)
		return err_set(err, -ENOENT, "process %d has no perf map", (int)pid);
	/* Nobody may read our own library's until it is complete. */
	if (r == -EACCES)
		return err_set(err, -EAGAIN,
			       "process %d may not read /tmp/%s: it is another's, or not complete",
			       (int)pid, name);
	if (r == -ETIMEDOUT || r == -EBUSY || r == -EAGAIN)
		return err_set(err, -EAGAIN, "process %d: /tmp does not answer", (int)pid);
	if (r == 0 && (io_stat(fd, &st) < 0 || (st.st_uid != status.euid && st.st_uid != 0)))
		r = -EINVAL;
	if (r == -EINVAL || r == -EXDEV || r == -ELOOP)
		return err_set(err, -EPERM, "process %d: /tmp/%s is not a regular file of its user",
			       (int)pid, name);
	if (r < 0)
		return err_set(err, -EPERM, "process %d: cannot open /tmp/%s: %s", (int)pid, name,
			       strerror(-r));
	return cpu_perfmap_open_take(TAKE_FD(fd), ret_map, err);
}
