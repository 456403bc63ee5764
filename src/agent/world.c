/* src/agent/world.c: see world.h. */
#include "agent/world.h"

#include <stdio.h>
#include <sys/stat.h>

static struct world_exe world_exe_of(pid_t pid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (stat(path, &st) < 0)
		return (struct world_exe){0};
	return (struct world_exe){.dev = st.st_dev, .ino = st.st_ino};
}

const struct world_ops world_procfs = {
	.list = proc_list,
	.stat = proc_stat_read,
	.exe = world_exe_of,
	.info = proc_info_read,
};
