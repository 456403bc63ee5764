/* src/cli/cmd/cpu_java.c: see cpu_java.h. */
#include "cli/cmd/cpu_java.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/data_dir.h"
#include "cli/render/report.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "cpu/symbols/perfmap.h"
#include "java/attach/attach.h"
#include "java/detect.h"
#include "java/perfmap/perfmap.h"

#define CPU_JAVA_MAX 256
/* A single profile: names may be fresher than in the agent. */
#define CPU_JAVA_MIN_NS (2 * NS_PER_SEC)
#define CPU_JAVA_LOOK_NS (250 * NS_PER_MS)

struct cmd_cpu_java {
	char *data_dir;
	struct java_perfmap *maps[CPU_JAVA_MAX];
	size_t len;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopping;	/* with the lock */
	struct err err; /* the thread's last error */
};

/* 1 if we may touch the process; explains why not if it was named on the command line. */
static int java_may(const struct proc_info *info, bool is_named)
{
	struct err err = {};
	struct java_vm vm;
	int r = java_detect_pid(info->id.pid, &vm, &err);
	char line[ERR_LINE_MAX];

	if (r <= 0) {
		if (is_named)
			cli_note("No Java names: %s.",
				 r < 0 ? err_describe(&err, r, line) : "not a Java process");
		return 0;
	}
	if (!info->java_off && !info->opted_out)
		return 1;
	cli_note("No Java names: process %d has opted out (%s in its environment).",
		 (int)info->id.pid, info->java_off ? "SONDE_JAVA=off" : "SONDE_PROFILING=disabled");
	return 0;
}

static void java_add(struct cmd_cpu_java *j, const struct proc_info *info, bool is_named)
{
	const struct java_perfmap_options options = {.state_dir = j->data_dir,
						     .min_ns = CPU_JAVA_MIN_NS};
	char line[ERR_LINE_MAX];
	struct err err = {};
	int r;

	if (java_may(info, is_named) <= 0)
		return;
	if (j->len == CPU_JAVA_MAX) {
		cli_note("No Java names for process %d: the limit is %d JVMs at a time; profile "
			 "one by PID.",
			 (int)info->id.pid, CPU_JAVA_MAX);
		return;
	}
	r = java_perfmap_start(&info->id, &options, &j->maps[j->len], &err);
	if (r == 0)
		j->len++;
	else
		cli_note("No Java names: %s.", err_describe(&err, r, line));
}

static int java_add_all(struct cmd_cpu_java *j, struct err *err)
{
	_cleanup_free_ pid_t *pids = NULL;
	struct proc_info info;
	size_t len;
	int r = proc_list(&pids, &len, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < len; i++)
		if (proc_info_read(pids[i], &info, NULL) == 0 && !info.kernel_thread)
			java_add(j, &info, false);
	return 0;
}

static void java_keep(struct cmd_cpu_java *j)
{
	for (size_t i = 0; i < j->len; i++) {
		struct err err = {};
		int r = java_perfmap_keep(j->maps[i], &err);

		if (r < 0 && r != -ESRCH && r != -EAGAIN)
			j->err = err;
	}
}

static void *java_loop(void *arg)
{
	struct cmd_cpu_java *j = arg;

	java_attach_set_interrupt(stop_count);
	(void)pthread_mutex_lock(&j->lock);
	while (!j->stopping) {
		uint64_t next = clock_mono_ns() + CPU_JAVA_LOOK_NS;
		struct timespec until = {.tv_sec = (time_t)(next / NS_PER_SEC),
					 .tv_nsec = (long)(next % NS_PER_SEC)};

		(void)pthread_cond_clockwait(&j->changed, &j->lock, CLOCK_MONOTONIC, &until);
		if (j->stopping)
			break;
		(void)pthread_mutex_unlock(&j->lock);
		java_keep(j);
		(void)pthread_mutex_lock(&j->lock);
	}
	(void)pthread_mutex_unlock(&j->lock);
	return NULL;
}

static int java_new(const char *dir, struct cmd_cpu_java **ret_java, struct err *err)
{
	_cleanup_(cmd_cpu_java_freep) struct cmd_cpu_java *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return err_oom(err);
	(void)pthread_mutex_init(&j->lock, NULL);
	(void)pthread_cond_init(&j->changed, NULL);
	r = data_dir_path(dir, &j->data_dir, err);
	if (r == 0)
		r = data_dir_make(j->data_dir, err);
	if (r < 0)
		return r;
	*ret_java = TAKE_PTR(j);
	return 0;
}

int cmd_cpu_java_start(const struct proc_info *target, const char *dir,
		       struct cmd_cpu_java **ret_java, struct err *err)
{
	_cleanup_(cmd_cpu_java_freep) struct cmd_cpu_java *j = NULL;
	int r = java_new(dir, &j, err);

	if (r < 0)
		return r;
	java_attach_set_interrupt(stop_count);
	/* Also cleans up what a killed sonde left in other JVMs. */
	(void)java_perfmaps_restore(j->data_dir, NULL);
	if (target)
		java_add(j, target, true);
	else
		r = java_add_all(j, err);
	if (r < 0)
		return r;
	if (j->len && pthread_create(&j->thread, NULL, java_loop, j))
		return err_set(err, -EAGAIN, "cannot start a thread: %s", strerror(EAGAIN));
	j->has_thread = j->len > 0;
	*ret_java = TAKE_PTR(j);
	return 0;
}

void cmd_cpu_java_finish(struct cmd_cpu_java *j)
{
	if (!j || !j->has_thread)
		return;
	(void)pthread_mutex_lock(&j->lock);
	j->stopping = true;
	(void)pthread_cond_broadcast(&j->changed);
	(void)pthread_mutex_unlock(&j->lock);
	(void)pthread_join(j->thread, NULL);
	j->has_thread = false;
	java_keep(j);
}

static void java_tell(const struct java_perfmap_stats *s)
{
	if (s->is_users)
		cli_note("Java names come from an existing perf map that sonde did not write; code "
			 "compiled since then shows as [jit].");
	else
		cli_note("Java names come from a perf map: %llu functions, written %llu times, "
			 "%.1f ms of JVM time. It has no inlined calls.",
			 (unsigned long long)s->functions, (unsigned long long)s->written,
			 (double)s->spent_ns / NS_PER_MS);
	if (s->is_cut)
		cli_note("The perf map is incomplete: /tmp is full, or the map is too large.");
}

void cmd_cpu_java_stop(struct cmd_cpu_java *j)
{
	struct java_perfmap_stats s;
	char line[ERR_LINE_MAX];
	struct err err = {};
	int r;

	if (!j)
		return;
	cmd_cpu_java_finish(j);
	for (size_t i = 0; i < j->len; i++) {
		java_perfmap_stats(j->maps[i], &s);
		java_tell(&s);
		r = java_perfmap_stop(j->maps[i], &err);
		if (r < 0)
			cli_note("Cleanup failed; the next sonde tries again: %s",
				 err_describe(&err, r, line));
	}
	if (j->err.text[0])
		cli_note("Code compiled while sampling may show as [jit]: %s.",
			 err_describe(&j->err, 0, line));
}

void cmd_cpu_java_free(struct cmd_cpu_java *j)
{
	if (!j)
		return;
	cmd_cpu_java_finish(j);
	for (size_t i = 0; i < j->len; i++)
		java_perfmap_free(j->maps[i]);
	(void)pthread_cond_destroy(&j->changed);
	(void)pthread_mutex_destroy(&j->lock);
	free(j->data_dir);
	free(j);
}

void cmd_cpu_java_explain(const struct proc_info *target)
{
	_cleanup_(cpu_perfmap_closep) struct cpu_perfmap *map = NULL;
	struct java_vm vm;

	if (java_detect_pid(target->id.pid, &vm, NULL) <= 0 || vm.kind != JAVA_HOTSPOT ||
	    cpu_perfmap_open(target->id.pid, &map, NULL) == 0)
		return;
	if (vm.major && vm.major < JAVA_PERFMAP_MAJOR)
		cli_note("No Java names: JDK %s cannot write a perf map (JDK %d and later can).",
			 vm.version, JAVA_PERFMAP_MAJOR);
	else
		cli_note("No Java names; use --java to have the JVM write a perf map.");
}
