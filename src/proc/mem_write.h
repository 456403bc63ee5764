/* src/proc/mem_write.h: the act of writing for proc_mem_replace(); private to this folder. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_MEM_WRITE_MAX ((size_t)64)

/*
 * May hang. The address space is that of mem_fd, a /proc/PID/mem. -ESRCH if it is gone, -ESTALE if
 * `old` is not at the address, -EFAULT, -EACCES without CAP_DAC_OVERRIDE, -EPERM otherwise.
 */
int proc_mem_write_at(pid_t pid, int mem_fd, uint64_t addr, const void *old, const void *src,
		      size_t len);
