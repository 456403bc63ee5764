/* src/agent/schedule/processes.h: the processes of the machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/info.h"
#include "proc/stat.h"

struct agent_processes_ops {
	/* Ascending; the caller frees the array. */
	int (*list)(pid_t **ret_pids, size_t *ret_len, struct err *err);
	/* -ESRCH if there is no such process. */
	int (*stat)(pid_t pid, struct proc_stat *ret_stat, struct err *err);
	/* The same of many, in one go; see proc_stat_read_many(). */
	void (*stats)(const pid_t *pids, size_t n, struct proc_stat_reading *readings);
	/* Changes when a process starts or exits; 0 if unknown. */
	uint64_t (*census)(void);

	/* Reads the process's memory and may hang: for pool threads only. */
	int (*info)(pid_t pid, struct proc_info *ret_info, struct err *err);
	/* The file that it runs, as a mere path (O_PATH); the same. */
	int (*executable)(pid_t pid, int *ret_path_fd);
};

extern const struct agent_processes_ops agent_processes_procfs;
