/* src/agent/world.c: see world.h. */
#include "agent/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

#define WORLD_ENVIRON_MAX ((size_t)128 << 10)

static struct world_exe world_exe_of(pid_t pid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (stat(path, &st) < 0)
		return (struct world_exe){0};
	return (struct world_exe){.dev = st.st_dev, .ino = st.st_ino};
}

static bool world_opted_out(pid_t pid)
{
	_cleanup_(buf_release) struct buf env = buf_with_max(WORLD_ENVIRON_MAX);
	struct view var;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	/* What lies beyond the maximum is left unread. */
	(void)io_read_file(AT_FDCWD, path, &env, NULL);
	for (size_t at = 0; view_cstr(buf_view(&env), at, &var); at += var.len + 1)
		if (view_eq(var, view_str("SONDE_PROFILING=disabled")))
			return true;
	return false;
}

const struct world_ops world_procfs = {
	.list = proc_list,
	.stat = proc_stat_read,
	.exe = world_exe_of,
	.info = proc_info_read,
	.opted_out = world_opted_out,
};
