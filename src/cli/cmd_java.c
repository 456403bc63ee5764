/*
 * src/cli/cmd_java.c: `sonde java`: what a Java program allocates, and where it waits for locks.
 *
 * The JVM's own recorder tells; it is started for as long as we look, and everything is taken out
 * again, also when we are interrupted. One recording serves all profiles.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cmd_cpu_java.h"
#include "cli/report.h"
#include "cli/stop.h"
#include "cli/stored.h"
#include "cli/term.h"
#include "cli/units.h"
#include "java/collect.h"
#include "proc/info.h"

#define JAVA_STEP_NS (200 * NS_PER_MS)
#define JAVA_READ_NS (1 * NS_PER_SEC)
/* A user's recording that starts meanwhile ends ours soon. */
#define JAVA_KEEP_NS (5 * NS_PER_SEC)
#define JAVA_MAX_NS (3600 * NS_PER_SEC)

enum {
	JAVA_DURATION = REPORT_N,
	JAVA_DATA_DIR,
	JAVA_ASYNC,
	JAVA_N,
};

static const struct cli_option java_options[JAVA_N] = {
	REPORT_OPTIONS("alloc_space, alloc_objects (JDK 8 and 11); delay or contentions; cpu or "
		       "samples"),
	[JAVA_DURATION] = {.letter = 'd',
			   .name = "duration",
			   .arg = "DURATION",
			   .help = "how long (default 30s)"},
	[JAVA_DATA_DIR] = {.name = "data-dir",
			   .arg = "DIR",
			   .help = "where is noted what is in the JVM meanwhile (default: that of "
				   "sonde run)"},
	[JAVA_ASYNC] = {.name = "async-profiler",
			.arg = "FILE",
			.help = "load this libasyncProfiler.so into the JVM, and use it instead"},
};

static const char *const kinds[JFR_PROFILE_N] = {
	[JFR_PROFILE_CPU] = "cpu",
	[JFR_PROFILE_ALLOC] = "alloc",
	[JFR_PROFILE_LOCK] = "lock",
};

struct java_request {
	pid_t pid;
	enum jfr_profile_kind kind;
	uint64_t duration_ns;
	char *data_dir;
	const char *async_library; /* or NULL */
	struct report report;
	bool samples; /* the JVM cannot tell its CPU time: it is sampled from outside */
};

static void java_request_release(struct java_request *q)
{
	free(q->data_dir);
}

static int java_parse_kind(const char *name, enum jfr_profile_kind *ret_kind, struct err *err)
{
	for (int k = 0; k < JFR_PROFILE_N; k++)
		if (strcmp(kinds[k], name) == 0) {
			*ret_kind = (enum jfr_profile_kind)k;
			return 0;
		}
	return err_set(err, -EINVAL, "unknown profile '%s': use alloc, lock or cpu", name);
}

static int java_parse(const struct cli_args *args, struct java_request *q, struct err *err)
{
	const char *duration = args->values[JAVA_DURATION];
	uint64_t pid = 0;
	int r = report_parse(args, &q->report, err);

	if (r == 0)
		r = cli_parse_number("PID", args->operands[0], INT_MAX, &pid, err);
	if (r < 0)
		return r;
	q->pid = (pid_t)pid;
	q->duration_ns = 30 * NS_PER_SEC;
	q->kind = JFR_PROFILE_ALLOC;
	q->async_library = args->values[JAVA_ASYNC];
	if (args->n_operands > 1)
		r = java_parse_kind(args->operands[1], &q->kind, err);
	if (r == 0 && duration)
		r = cli_parse_duration("--duration", duration, &q->duration_ns, err);
	if (r == 0 && q->duration_ns > JAVA_MAX_NS)
		r = err_set(err, -EINVAL, "--duration is at most 1h");
	return r < 0 ? r : stored_dir(args->values[JAVA_DATA_DIR], &q->data_dir, err);
}

/* What can be refused is refused before anything is touched. */
static int java_check(struct java_request *q, struct proc_info *ret_info, struct err *err)
{
	struct java_vm vm = {};
	int r = proc_info_read(q->pid, ret_info, err);

	if (r == 0)
		r = java_detect_pid(q->pid, &vm, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, -ENOTSUP, "process %d (%s) runs no Java", (int)q->pid,
			       ret_info->comm);
	if (vm.reason)
		return err_set(err, -ENOTSUP, "process %d runs %s %s: %s", (int)q->pid, vm.name,
			       vm.version, vm.reason);
	if (ret_info->java_off || ret_info->opted_out)
		return err_set(err, -ENOTSUP,
			       "process %d asks not to be profiled: %s is in its environment",
			       (int)q->pid,
			       ret_info->java_off ? "SONDE_JAVA=off" : "SONDE_PROFILING=disabled");
	q->samples = q->kind == JFR_PROFILE_CPU && vm.major < 25 && !q->async_library;
	if (q->samples)
		cli_note("%s (pid %d): %s %s, sampled from outside: its recorder cannot tell CPU "
			 "time (JDK 25 can).",
			 ret_info->service, (int)q->pid, vm.name, vm.version);
	return 0;
}

static int java_start(const struct java_request *q, const struct proc_info *info,
		      struct java_collect **ret_collect, struct err *err)
{
	const struct java_collect_options options = {
		.recording = {.state_dir = q->data_dir, .cpu_time = q->kind == JFR_PROFILE_CPU},
		.profile = {.label_threads = true, .label_classes = true},
		.interval_ns = JAVA_READ_NS,
		.async_library = q->async_library,
	};
	int r = stored_make_dir(q->data_dir, err);

	/* Also what one of us that was killed has left in other JVMs. */
	if (r == 0)
		(void)java_recordings_restore(q->data_dir, NULL);
	return r < 0 ? r : java_collect_start(&info->id, &options, ret_collect, err);
}

/* Reads as it goes: what is read is safe, whatever becomes of the JVM. 1: there is no more. */
static int java_watch(struct java_collect *c, const struct proc_info *info, uint64_t duration_ns,
		      struct err *err)
{
	uint64_t begin = clock_mono_ns(), read_ns = 0, keep_ns = 0, done;
	int r = 0;

	while (r == 0 && (done = clock_mono_ns() - begin) < duration_ns) {
		term_progress("recording", done, duration_ns);
		clock_sleep_ns(MIN(duration_ns - done, JAVA_STEP_NS));
		done = clock_mono_ns() - begin;
		if (stop_asked()) {
			cli_note("Ended after %.1f s; this is what was recorded until then.",
				 (double)done / NS_PER_SEC);
			break;
		}
		if (!proc_id_alive(&info->id)) {
			cli_note("Process %d ended after %.1f s.", (int)info->id.pid,
				 (double)done / NS_PER_SEC);
			r = 1;
		}
		if (r == 0 && done - keep_ns >= JAVA_KEEP_NS) {
			keep_ns = done;
			r = java_collect_keep(c, err);
		}
		if (r == 0 && done - read_ns >= JAVA_READ_NS) {
			read_ns = done;
			r = java_collect_read(c, err);
		}
	}
	term_progress("recording", 1, 1);
	return r;
}

/* All that there is then was read; also when it fails, nothing stays in the JVM. */
static int java_record(const struct java_request *q, struct java_collect *c,
		       const struct proc_info *info, struct java_collect_window *ret_window,
		       struct err *err)
{
	int r = java_watch(c, info, q->duration_ns, err);
	struct err later = {};
	char line[ERR_LINE_MAX];
	int stopped;

	/* The user's own recording goes first; what there is until then is ours to show. */
	if (r == -EBUSY) {
		cli_note("Ended early: %s.", err_describe(err, r, line));
		r = 1;
	}
	if (r == 0)
		r = java_collect_finish(c, err);
	if (r >= 0)
		r = java_collect_read(c, err);
	/* What was read before is there all the same. */
	if (r == -ESRCH)
		r = 0;
	*ret_window = java_collect_window(c);
	stopped = java_collect_stop(c, &later);
	if (stopped < 0 && proc_id_alive(&info->id))
		cli_note("Not all could be taken out of the JVM; the next sonde tries again: %s",
			 err_describe(&later, stopped, line));
	return r;
}

static void java_tell_hidden(struct java_collect *c)
{
	static const char why[] =
		"JDK 8 does not tell of all the memory that its compiled code takes. Start it with "
		"-XX:+UseG1GC or -XX:-FastTLABRefill.";
	char label[UNITS_LABEL_LEN];
	unsigned int percent;
	uint64_t bytes;

	if (!java_collect_hidden(c, &bytes, &percent))
		return;
	if (percent)
		cli_note("Missing: at least %u %% of what was allocated (%s): %s", percent,
			 units_label(label, (int64_t)bytes, "bytes", "auto"), why);
	else
		cli_note("Allocations may be missing: %s", why);
}

static void java_tell(const struct java_request *q, struct java_collect *c, const struct profile *p)
{
	struct java_collect_stats s;
	char label[UNITS_LABEL_LEN];

	java_collect_stats(c, &s);
	if (profile_n_samples(p) == 0)
		cli_note("The profile is empty: nothing was recorded in this time.");
	if (q->kind == JFR_PROFILE_ALLOC && s.profiler.first_samples)
		cli_note("Left out: the first sample of %llu threads, which stands for what they "
			 "have allocated before (%s).",
			 (unsigned long long)s.profiler.first_samples,
			 units_label(label, (int64_t)s.profiler.first_bytes, "bytes", "auto"));
	if (q->kind == JFR_PROFILE_ALLOC)
		java_tell_hidden(c);
	if (q->kind == JFR_PROFILE_CPU && s.profiler.cpu_dropped)
		cli_note("Lost: %llu samples, by the JVM.",
			 (unsigned long long)s.profiler.cpu_dropped);
	if (s.dropped)
		cli_note("Lost: %llu events that there was no room for in the JVM.",
			 (unsigned long long)s.dropped);
	if (s.profiler.lost)
		cli_note("Lost: %llu events beyond the limit of memory.",
			 (unsigned long long)s.profiler.lost);
	if (s.unread)
		cli_note("Lost: %llu events that make no sense.", (unsigned long long)s.unread);
	if (s.broken)
		cli_note("Lost: what is in %llu files that cannot be read: %s",
			 (unsigned long long)s.broken, s.why);
}

static const char *java_way_text(const struct java_collect *c)
{
	const char *way = java_collect_way(c);

	if (strcmp(way, "jfr") == 0)
		return "its own recorder";
	return strcmp(way, "jvmti") == 0 ? "a library of ours in it, for it has no recorder" : way;
}

static int java_profile(struct java_request *q, struct err *err)
{
	_cleanup_(java_collect_freep) struct java_collect *c = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct render_source source = {};
	struct report report = q->report;
	struct java_collect_window window;
	struct proc_info info;
	size_t type;
	int r;

	r = java_check(q, &info, err);
	if (r == 0 && q->samples)
		return cpu_java_profile(q->pid, q->data_dir, q->duration_ns, &q->report, err);
	if (r < 0)
		return r;
	/* From here on something is to be taken out again. */
	stop_catch_signals();
	r = java_start(q, &info, &c, err);
	if (r < 0)
		return r;
	cli_note("%s (pid %d): %s %s, by %s", info.service, (int)info.id.pid,
		 java_collect_vm(c)->name, java_collect_vm(c)->version, java_way_text(c));
	r = java_record(q, c, &info, &window, err);
	if (r == 0)
		r = java_collect_take(c, q->kind, &window, &p, err);
	if (r == 0)
		r = report_find_type(p, q->report.type, &type, err);
	if (r < 0)
		return r;
	source.process = &info;
	report.source = &source;
	java_tell(q, c, p);
	return report_write(&report, p, err);
}

static int java_run(const struct cli_args *args)
{
	_cleanup_(java_request_release) struct java_request q = {};
	struct err err = {};
	int r = java_parse(args, &q, &err);

	if (r < 0)
		return cli_fail_usage("java", &err);
	r = report_check_output(&q.report, &err);
	if (r == 0)
		r = java_profile(&q, &err);
	if (r == -EINVAL)
		return cli_fail_usage("java", &err);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_java = {
	.name = "java",
	.summary = "Profile what a Java program allocates, and where it waits for locks",
	.operands = "PID [alloc|lock|cpu]",
	.min_operands = 1,
	.max_operands = 2,
	.options = java_options,
	.n_options = ARRAY_SIZE(java_options),
	.notes = "Any HotSpot JVM from JDK 8u262 on, without flags or a restart: its own recorder "
		 "(Flight\n"
		 "Recorder) runs while we look, into a small file system of its own in the "
		 "program's /tmp,\n"
		 "and everything is taken out at the end. Needs root. Before JDK 25 cpu is sampled "
		 "from\n"
		 "outside, as sonde cpu --java does. A JVM without a recorder gets a small library "
		 "of ours instead, which "
		 "sees no\n"
		 "locks of java.util.concurrent. A program with SONDE_JAVA=off in its environment "
		 "is left alone.\n"
		 "\n"
		 "Examples:\n"
		 "  sonde java 4242                          who allocates most, over 30 s\n"
		 "  sonde java 4242 lock -d 1m -f tree       who waits for locks, by call path\n"
		 "  sonde java 4242 alloc -f pprof -o alloc.pb.gz\n",
	.run = java_run,
};
