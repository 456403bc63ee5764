/*
 * tests/oracle/dump/java_collectors.c: the other ways into a JVM, for
 * tests/oracle/test_java_collectors.py and bench/java.py.
 *
 *   java_collectors default PID DIR             what sonde chooses
 *   java_collectors recorder PID DIR            the JVM's own recorder
 *   java_collectors jvmti PID DIR [IDLE_MS]     our library
 *   java_collectors async PID DIR LIBRARY       async-profiler
 *
 * Says "on", then reads lines: "read" takes in what there is and prints the samples since the last
 * time, "keep" takes in only. At the end of its input it stops, prints what is left, and "off".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "java/collect/async_profiler.h"
#include "java/collect/collect.h"
#include "java/jvmti/jvmti.h"
#include "profile/profile.h"

static int fail(int r, const struct err *err)
{
	(void)fprintf(stderr, "%s: %s\n", r == -ENOTSUP ? "ENOTSUP" : strerrorname_np(-r),
		      err->text);
	return 1;
}

/* kind, both values, thread, class, and the stack from the leaf. */
static void print_samples(const char *kind, const struct profile *p)
{
	for (size_t i = 0; i < profile_n_samples(p); i++) {
		const struct profile_sample *s = profile_sample_at(p, i);
		uint32_t n;
		const uint32_t *stack = profile_stack_at(p, s->stack, &n);

		(void)printf("%s\t%" PRId64 "\t%" PRId64 "\t", kind, s->values[0],
			     profile_n_types(p) > 1 ? s->values[1] : 0);
		for (uint32_t l = 0; l < s->n_labels; l++)
			(void)printf("%s=%s ", profile_cstring(p, s->labels[l].key),
				     profile_cstring(p, s->labels[l].str));
		(void)putchar('\t');
		for (uint32_t f = 0; f < n; f++) {
			const struct profile_location *l = profile_location_at(p, stack[f]);
			const struct profile_function *fn =
				profile_function_at(p, l->lines[0].function);

			(void)printf("%s:%" PRId64 ";", profile_cstring(p, fn->name),
				     l->lines[0].line);
		}
		(void)putchar('\n');
	}
}

static int jvmti_print(struct java_jvmti *j, struct err *err)
{
	static const char *const names[] = {
		[JAVA_JFR_PROFILE_ALLOC] = "alloc", [JAVA_JFR_PROFILE_LOCK] = "lock"};
	struct java_jvmti_stats stats;

	for (int kind = JAVA_JFR_PROFILE_ALLOC; kind <= JAVA_JFR_PROFILE_LOCK; kind++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		int r = java_jvmti_take(j, kind, 0, 0, &p, err);

		if (r < 0)
			return r;
		print_samples(names[kind], p);
	}
	java_jvmti_stats(j, &stats);
	(void)printf("stats allocs=%" PRIu64 " locks=%" PRIu64 " dropped=%" PRIu64
		     " interval=%" PRIu64 " no_stack=%" PRIu64 "\n",
		     stats.events[JAVA_JFR_PROFILE_ALLOC], stats.events[JAVA_JFR_PROFILE_LOCK],
		     stats.dropped, stats.interval_bytes, stats.no_stack);
	return fflush(stdout) == 0 ? 0 : -EIO;
}

static int run_jvmti(const struct proc_id *id, const char *dir, const char *idle)
{
	_cleanup_(java_jvmti_freep) struct java_jvmti *j = NULL;
	struct java_jvmti_options o = {.state_dir = dir,
				       .profile = {.label_threads = true, .label_classes = true},
				       .idle_ns = idle ? strtoull(idle, NULL, 10) * NS_PER_MS : 0};
	struct err err = {};
	char line[64];
	int r = java_jvmti_start(id, &o, &j, &err);

	if (r < 0)
		return fail(r, &err);
	(void)puts("on");
	(void)fflush(stdout);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		r = java_jvmti_read(j, &err);
		if (r == 0 && strcmp(line, "read\n") == 0)
			r = jvmti_print(j, &err);
	}
	if (r == 0)
		r = java_jvmti_stop(j, &err);
	if (r == 0)
		r = jvmti_print(j, &err);
	if (r < 0)
		return fail(r, &err);
	(void)puts("off");
	return 0;
}

static int collect_print(struct java_collect *c, struct err *err)
{
	static const char *const names[JAVA_JFR_PROFILE_N] = {"cpu", "alloc", "lock"};
	struct java_collect_window window = java_collect_window(c);

	for (int kind = 0; kind < JAVA_JFR_PROFILE_N; kind++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		int r;

		if (java_collect_lacks(c, kind))
			continue;
		r = java_collect_take(c, kind, &window, &p, err);
		if (r < 0)
			return r;
		print_samples(names[kind], p);
	}
	return fflush(stdout) == 0 ? 0 : -EIO;
}

static int run_collect(const struct proc_id *id, const char *dir, bool recorder_only)
{
	_cleanup_(java_collect_freep) struct java_collect *c = NULL;
	struct java_collect_options o = {.recording = {.state_dir = dir},
					 .recorder_only = recorder_only,
					 .profile = {.label_threads = true, .label_classes = true}};
	struct err err = {};
	char line[64];
	int r = java_collect_start(id, &o, &c, &err);

	if (r < 0)
		return fail(r, &err);
	(void)puts("on");
	(void)fflush(stdout);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		r = java_collect_keep(c, &err);
		if (r == 0)
			r = java_collect_read(c, &err);
		if (r == 0 && strcmp(line, "read\n") == 0)
			r = collect_print(c, &err);
	}
	if (r == 0)
		r = java_collect_finish(c, &err);
	if (r == 0)
		r = java_collect_read(c, &err);
	if (r == 0)
		r = java_collect_stop(c, &err);
	if (r == 0)
		r = collect_print(c, &err);
	if (r < 0)
		return fail(r, &err);
	(void)puts("off");
	return 0;
}

static int async_print(struct java_async *a, struct err *err)
{
	static const char *const names[JAVA_JFR_PROFILE_N] = {"cpu", "alloc", "lock"};

	for (int kind = 0; kind < JAVA_JFR_PROFILE_N; kind++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		int r = java_async_take(a, kind, 0, 0, &p, err);

		if (r < 0)
			return r;
		print_samples(names[kind], p);
	}
	return fflush(stdout) == 0 ? 0 : -EIO;
}

static int run_async(const struct proc_id *id, const char *dir, const char *library)
{
	_cleanup_(java_async_freep) struct java_async *a = NULL;
	struct java_async_options o = {.state_dir = dir,
				       .library = library,
				       .profile = {.label_threads = true, .label_classes = true}};
	struct err err = {};
	char line[64];
	int r = java_async_start(id, &o, &a, &err);

	if (r < 0)
		return fail(r, &err);
	(void)puts("on");
	(void)fflush(stdout);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		r = java_async_read(a, &err);
		if (r == 0 && strcmp(line, "read\n") == 0)
			r = async_print(a, &err);
	}
	if (r == 0)
		r = java_async_stop(a, &err);
	if (r == 0)
		r = async_print(a, &err);
	if (r < 0)
		return fail(r, &err);
	(void)puts("off");
	return 0;
}

int main(int argc, char **argv)
{
	struct err err = {};
	struct proc_id id;
	int r;

	if (argc < 4)
		return 2;
	r = proc_id_of((pid_t)strtol(argv[2], NULL, 10), &id, &err);
	if (r < 0)
		return fail(r, &err);
	if (strcmp(argv[1], "recorder") == 0 || strcmp(argv[1], "default") == 0)
		return run_collect(&id, argv[3], strcmp(argv[1], "recorder") == 0);
	if (strcmp(argv[1], "jvmti") == 0)
		return run_jvmti(&id, argv[3], argv[4]);
	if (strcmp(argv[1], "async") == 0 && argc > 4)
		return run_async(&id, argv[3], argv[4]);
	return 2;
}
