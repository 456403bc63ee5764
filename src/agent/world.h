/* src/agent/world.h: which processes there are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/info.h"
#include "proc/stat.h"

struct world_ops {
	/* Ascending; the array is the caller's to free. */
	int (*list)(pid_t **ret_pids, size_t *ret_len, struct err *err);
	/* -ESRCH when there is no such process. */
	int (*stat)(pid_t pid, struct proc_stat *ret_stat, struct err *err);
	/* Another number after a process has come or gone; 0 when that cannot be told. */
	uint64_t (*census)(void);

	/* Reads the process's memory, and may hang: only for threads of the pool. */
	int (*info)(pid_t pid, struct proc_info *ret_info, struct err *err);
};

extern const struct world_ops world_procfs;
