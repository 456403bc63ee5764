/*
 * tests/oracle/dump/java_dump.c: what the Java room finds, for tests/oracle/test_java_attach.py.
 *
 *   java_dump detect PID           kind, version, whether it takes commands
 *   java_dump counters PID         every counter, as jcmd PerfCounter.print has them
 *   java_dump metrics PID          the points of its metrics
 *   java_dump jcmd PID COMMAND     the JVM's answer
 *   java_dump record PID DIR       records until its input ends; answers "check", "rotate", "list"
 *   java_dump restore DIR          takes out what others have left
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "java/attach/attach.h"
#include "java/detect.h"
#include "java/hsperf.h"
#include "java/metrics.h"
#include "java/recorder/recording.h"

/* ENOTSUP has two names here. */
static const char *name_of(int r)
{
	return r == -ENOTSUP ? "ENOTSUP" : strerrorname_np(-r);
}

static int fail(int r, const struct err *err)
{
	(void)fprintf(stderr, "%s: %s\n", name_of(r), err->text);
	return 1;
}

static int dump_detect(pid_t pid)
{
	static const char *const commands[] = {"yes", "no", "unknown", "not yet"};
	struct err err = {};
	struct java_vm vm;
	int r = java_detect_pid(pid, &vm, &err);

	if (r < 0)
		return fail(r, &err);
	if (r == 0)
		(void)puts("no Java");
	else
		(void)printf("%s|%s|%u|%u|%s|%s\n", vm.name, vm.version, vm.major, vm.update,
			     commands[vm.commands], vm.reason ? vm.reason : "");
	return 0;
}

static int open_counters(pid_t pid, struct java_hsperf **ret, struct err *err)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {};
	struct proc_id id;
	int r = proc_id_of(pid, &id, err);

	if (r == 0)
		r = proc_maps_read(pid, &maps, err);
	if (r == 0)
		r = java_hsperf_open(&id, &maps, ret, err);
	return r < 0 ? r : java_hsperf_read(*ret, err);
}

static int dump_counters(pid_t pid)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	struct java_counter c;
	struct err err = {};
	size_t at = 0;
	int r = open_counters(pid, &h, &err);

	while (r >= 0 && (r = java_hsperf_next(h, &at, &c)) > 0) {
		(void)printf("%.*s=", (int)c.name.len, (const char *)c.name.data);
		if (c.is_text)
			(void)printf("\"%.*s\"\n", (int)c.text.len, (const char *)c.text.data);
		else
			(void)printf("%" PRId64 "\n", c.number);
	}
	return r < 0 ? fail(r, &err) : 0;
}

static int print_point(void *arg, const struct metric_point *p)
{
	const struct metric *m = p->metric;

	(void)arg;
	(void)printf("%s|%s", m->name, m->unit);
	for (size_t i = 0; i < METRIC_MAX_ATTRIBUTES; i++)
		if (p->attributes[i])
			(void)printf("|%s=%s", m->attributes[i], p->attributes[i]);
	(void)printf("|%.17g\n", p->value);
	return 0;
}

static int dump_metrics(pid_t pid)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	struct java_metrics m;
	struct err err = {};
	int r = open_counters(pid, &h, &err);

	if (r == 0)
		r = java_metrics_read(h, &m, &err);
	if (r < 0)
		return fail(r, &err);
	return java_metrics_each(&m, clock_unix_ns() / NS_PER_MS, print_point, NULL);
}

static int dump_jcmd(pid_t pid, const char *command)
{
	_cleanup_(java_attach_closep) struct java_attach *attach = NULL;
	_cleanup_(buf_release) struct buf answer = {};
	struct err err = {};
	struct proc_id id;
	int r = proc_id_of(pid, &id, &err);

	if (r == 0)
		r = java_attach_open(&id, 0, &attach, &err);
	if (r == 0)
		r = java_attach_jcmd(attach, command, &answer, &err);
	if (r < 0)
		return fail(r, &err);
	(void)fwrite(answer.data, 1, answer.len, stdout);
	return 0;
}

static void list_files(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			list_files(fd, e->d_name);
		else
			(void)printf("%s %lld ", e->d_name, (long long)st.st_size);
	}
	if (d)
		(void)closedir(d);
}

static void obey(struct java_recording *rec, const char *word)
{
	struct err err = {};
	int r = 0;

	if (strcmp(word, "check\n") == 0)
		r = java_recording_check(rec, &err);
	else if (strcmp(word, "rotate\n") == 0)
		r = java_recording_rotate(rec, &err);
	else
		list_files(java_recording_dirfd(rec), ".");
	(void)printf("%s %s\n", r < 0 ? name_of(r) : "ok", err.text);
	(void)fflush(stdout);
}

static int dump_record(pid_t pid, const char *dir)
{
	const struct java_recording_options options = {.state_dir = dir};
	_cleanup_(java_recording_freep) struct java_recording *rec = NULL;
	struct err err = {};
	struct proc_id id;
	char word[32];
	int r = proc_id_of(pid, &id, &err);

	if (r == 0)
		r = java_recording_start(&id, &options, &rec, &err);
	if (r < 0)
		return fail(r, &err);
	(void)printf("recording %d\n", java_recording_is_live(rec));
	(void)fflush(stdout);
	while (fgets(word, sizeof(word), stdin))
		obey(rec, word);
	r = java_recording_stop(rec, &err);
	return r < 0 ? fail(r, &err) : 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	pid_t pid = argc > 2 ? (pid_t)strtol(argv[2], NULL, 10) : 0;
	struct err err = {};
	int r;

	if (strcmp(what, "detect") == 0)
		return dump_detect(pid);
	if (strcmp(what, "counters") == 0)
		return dump_counters(pid);
	if (strcmp(what, "metrics") == 0)
		return dump_metrics(pid);
	if (strcmp(what, "jcmd") == 0 && argc > 3)
		return dump_jcmd(pid, argv[3]);
	if (strcmp(what, "record") == 0 && argc > 3)
		return dump_record(pid, argv[3]);
	if (strcmp(what, "restore") != 0)
		return 2;
	r = java_recordings_restore(argv[2], &err);
	if (r < 0)
		return fail(r, &err);
	(void)printf("%d\n", r);
	return 0;
}
