/* src/java/recorder/cost.c: see cost.h. */
#include "java/recorder/cost.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "proc/maps.h"
#include "proc/status.h"

#define COST_MAX_THREADS 65536

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* A thread that every JVM has from its first recording on; the kernel keeps 15 characters. */
static bool is_recorder(int tasks, const char *tid)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(64);
	char path[64];

	(void)snprintf(path, sizeof(path), "%.40s/comm", tid);
	return io_read_file(tasks, path, &text, NULL) == 0 &&
	       view_starts_with(buf_view(&text), "JFR Recorder Th");
}

static bool has_recorded(pid_t pid)
{
	_cleanup_(closedirp) DIR *tasks = NULL;
	const struct dirent *entry;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	for (size_t n = 0; tasks && n < COST_MAX_THREADS && (entry = readdir(tasks)); n++)
		if (entry->d_name[0] != '.' && is_recorder(dirfd(tasks), entry->d_name))
			return true;
	return false;
}

bool java_recorder_is_costly(const struct java_vm *vm)
{
	return vm->kind == JAVA_HOTSPOT && vm->major && !has_recorded(vm->id.pid);
}

static bool has_profiler(pid_t pid)
{
	static const char *const names[] = {"asyncProfiler", "sonde-async-", "javaProfiler",
					    "honest-profiler", "libddprof"};
	_cleanup_(proc_maps_release) struct proc_maps maps = {};

	if (proc_maps_read(pid, &maps, NULL) < 0)
		return false;
	for (size_t i = 0; i < maps.len; i++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			if (strstr(maps.maps[i].path, names[k]))
				return true;
	return false;
}

/* A JVM that has recorded CPU time keeps a handler of its own. */
bool java_recorder_has_rival(const struct java_vm *vm)
{
	struct proc_status status;

	return vm->major >= JAVA_RECORDER_CPU_MAJOR &&
	       proc_status_read(vm->id.pid, &status, NULL) == 0 &&
	       status.caught >> (SIGPROF - 1) & 1 &&
	       (!has_recorded(vm->id.pid) || has_profiler(vm->id.pid));
}
