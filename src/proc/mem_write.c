/* src/proc/mem_write.c: see mem_write.h. */
#include "proc/mem_write.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/host.h"

static int write_open(pid_t pid, int *ret_fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	*ret_fd = open(path, O_RDWR | O_CLOEXEC);
	if (*ret_fd >= 0)
		return 0;
	/* Not the mode of the file: something else denies it. */
	if (errno == EACCES && proc_host_has_cap(CAP_DAC_OVERRIDE))
		return -EPERM;
	return errno == ENOENT ? -ESRCH : -errno;
}

/* 0 or -errno of a call that must move len bytes; it moves none where the address space is gone. */
static int write_result(ssize_t n, size_t len)
{
	if (n == 0)
		return -ESRCH;
	return n < 0 || (size_t)n < len ? -EFAULT : 0;
}

/*
 * Opens the descriptor for writing first, then checks that the old address space is alive. So both
 * are bound to the same one, and a later exec makes the write fail.
 */
int proc_mem_write_at(pid_t pid, int mem_fd, uint64_t addr, const void *old, const void *src,
		      size_t len)
{
	uint8_t now[PROC_MEM_WRITE_MAX];
	_cleanup_close_ int fd = -1;
	int r;

	if (len == 0 || len > sizeof(now) || addr > INT64_MAX)
		return -EFAULT;
	r = write_open(pid, &fd);
	if (r < 0)
		return r;
	/* Address 0 is never mapped, so this touches no page. */
	if (pread(mem_fd, now, 1, 0) == 0)
		return -ESRCH;
	r = write_result(pread(fd, now, len, (off_t)addr), len);
	if (r < 0)
		return r;
	if (memcmp(now, old, len) != 0)
		return -ESTALE;
	return write_result(pwrite(fd, src, len, (off_t)addr), len);
}
