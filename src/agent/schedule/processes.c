/* src/agent/schedule/processes.c: see processes.h. */
#include "agent/schedule/processes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "proc/aide/aides.h"

/*
 * The last two fields of loadavg: "RUNNING/THREADS LAST_PID". A new process advances the last pid;
 * an exit without one lowers the number of threads.
 */
static uint64_t world_census(void)
{
	uint64_t threads;
	char text[128], *at;
	_cleanup_close_ int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strchr(text, '/');
	if (!at)
		return 0;
	threads = strtoull(at + 1, &at, 10);
	return hash_mix(threads << 32 ^ strtoull(at, NULL, 10)) | 1;
}

static int world_executable(pid_t pid, int *ret_path_fd)
{
	return proc_aides_open(pid, "exe", O_PATH, ret_path_fd);
}

const struct agent_processes_ops agent_processes_procfs = {
	.list = proc_list,
	.stat = proc_stat_read,
	.stats = proc_stat_read_many,
	.census = world_census,
	.info = proc_info_read,
	.executable = world_executable,
};
