/* src/proc/lock.c: see lock.h. */
#include "proc/lock.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

int proc_lock(const struct proc_id *id, const char *work, int *ret_fd, struct err *err)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "sonde-%s-%d-%llu", work,
			 (int)id->pid, (unsigned long long)id->start_ticks);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_set(err, -errno, "cannot create a lock: %s", strerror(errno));
	if (bind(fd, (const struct sockaddr *)&name, len) < 0)
		return err_lack(err, -EBUSY, ERR_CAUSE_BUSY, "",
				"another sonde is working on process %d", (int)id->pid);
	*ret_fd = TAKE_FD(fd);
	return 0;
}
