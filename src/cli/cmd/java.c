/*
 * src/cli/cmd/java.c: `sonde java`: allocations, lock waits and CPU time of a Java process.
 *
 * The JVM's own recorder runs for the duration, and everything is removed again, also on
 * interruption. One recording serves all profiles.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cmd/cpu_java.h"
#include "cli/data_dir.h"
#include "cli/render/report.h"
#include "cli/render/units.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "java/attach/attach.h"
#include "java/collect/collect.h"
#include "java/recorder/cost.h"
#include "proc/info.h"

#define JAVA_STEP_NS (200 * NS_PER_MS)
#define JAVA_READ_NS (1 * NS_PER_SEC)
/* If the user starts a recording, ours must stop soon. */
#define JAVA_KEEP_NS (5 * NS_PER_SEC)
#define JAVA_MAX_NS (3600 * NS_PER_SEC)

enum {
	JAVA_DURATION = REPORT_N,
	JAVA_DATA_DIR,
	JAVA_ASYNC,
	JAVA_RECORDER,
	JAVA_N,
};

static const struct cli_option java_options[JAVA_N] = {
	REPORT_OPTIONS("alloc_space, alloc_objects (JDK 8 and 11); delay or contentions; cpu or "
		       "samples"),
	[JAVA_DURATION] = {.letter = 'd',
			   .name = "duration",
			   .arg = "DURATION",
			   .help = "how long to record, once the JVM does (default 30s)"},
	[JAVA_DATA_DIR] =
		{.name = "data-dir",
		 .arg = "DIR",
		 .help = "where to track changes made to the JVM (default: as for sonde run)"},
	[JAVA_ASYNC] = {.name = "async-profiler",
			.arg = "FILE",
			.help = "load this libasyncProfiler.so into the JVM and use it instead"},
	[JAVA_RECORDER] = {.name = "flight-recorder",
			   .help = "load nothing; use Flight Recorder even where its first start "
				   "slows the JVM down for seconds"},
};

static const char *const kinds[JAVA_JFR_PROFILE_N] = {
	[JAVA_JFR_PROFILE_CPU] = "cpu",
	[JAVA_JFR_PROFILE_ALLOC] = "alloc",
	[JAVA_JFR_PROFILE_LOCK] = "lock",
};

struct java_request {
	pid_t pid;
	enum java_jfr_profile_kind kind;
	uint64_t duration_ns;
	char *data_dir;
	const char *async_library; /* or NULL */
	bool recorder_only;
	struct report report;
	bool samples; /* the JVM has no CPU-time events: sampled by us */
};

static void java_request_release(struct java_request *q)
{
	free(q->data_dir);
}

static int java_parse_kind(const char *name, enum java_jfr_profile_kind *ret_kind, struct err *err)
{
	for (int k = 0; k < JAVA_JFR_PROFILE_N; k++)
		if (strcmp(kinds[k], name) == 0) {
			*ret_kind = (enum java_jfr_profile_kind)k;
			return 0;
		}
	return err_set(err, -EINVAL, "unknown profile '%s'; use alloc, lock or cpu", name);
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
	q->kind = JAVA_JFR_PROFILE_ALLOC;
	q->async_library = args->values[JAVA_ASYNC];
	q->recorder_only = args->values[JAVA_RECORDER] != NULL;
	if (q->recorder_only && q->async_library)
		return err_set(err, -EINVAL,
			       "--async-profiler and --flight-recorder exclude each other");
	if (args->n_operands > 1)
		r = java_parse_kind(args->operands[1], &q->kind, err);
	if (r == 0 && duration)
		r = cli_parse_duration("--duration", duration, &q->duration_ns, err);
	if (r == 0 && q->duration_ns > JAVA_MAX_NS)
		r = err_set(err, -EINVAL, "--duration must be at most 1h");
	return r < 0 ? r : data_dir_path(args->values[JAVA_DATA_DIR], &q->data_dir, err);
}

/* Refuse what can be refused before touching anything. */
static int java_check(struct java_request *q, struct proc_info *ret_info, struct err *err)
{
	struct java_vm vm = {};
	bool has_rival, costly;
	int r = proc_info_read(q->pid, ret_info, err);

	if (r == 0)
		r = java_detect_pid(q->pid, &vm, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, -ENOTSUP, "process %d (%s) is not a Java process", (int)q->pid,
			       ret_info->comm);
	if (vm.reason)
		return err_set(err, -ENOTSUP, "process %d runs %s %s: %s", (int)q->pid, vm.name,
			       vm.version, vm.reason);
	if (ret_info->java_off || ret_info->opted_out)
		return err_set(err, -ENOTSUP,
			       "process %d has opted out of profiling (%s in its environment)",
			       (int)q->pid,
			       ret_info->java_off ? "SONDE_JAVA=off" : "SONDE_PROFILING=disabled");
	has_rival = java_recorder_has_rival(&vm);
	costly = java_recorder_is_costly(&vm);
	q->samples =
		q->kind == JAVA_JFR_PROFILE_CPU && !q->async_library &&
		(vm.major < JAVA_RECORDER_CPU_MAJOR || has_rival || (costly && !q->recorder_only));
	if (q->recorder_only && !q->samples && costly)
		cli_note(
			"Warning: this is the first recording of this JVM. JDK %u throws away its "
			"compiled code for it; expect some ten seconds at a fraction of its speed.",
			vm.major);
	if (q->samples)
		cli_note("%s (pid %d): %s %s, sampled by sonde: %s.", ret_info->service,
			 (int)q->pid, vm.name, vm.version,
			 has_rival ? "another profiler has the signal that its recorder needs"
			 : vm.major < JAVA_RECORDER_CPU_MAJOR
				 ? "this JDK's recorder has no CPU-time profile (JDK 25 does)"
				 : "the first start of its recorder would slow it down for seconds "
				   "(--flight-recorder starts it all the same)");
	return 0;
}

static int java_start(const struct java_request *q, const struct proc_info *info,
		      struct java_collect **ret_collect, struct err *err)
{
	const struct java_collect_options options = {
		.recording = {.state_dir = q->data_dir,
			      .cpu_time = q->kind == JAVA_JFR_PROFILE_CPU},
		.profile = {.label_threads = true, .label_classes = true},
		.interval_ns = JAVA_READ_NS,
		.async_library = q->async_library,
		.recorder_only = q->recorder_only,
	};
	int r = data_dir_make(q->data_dir, err);

	/* Also cleans up what a killed sonde left in other JVMs. */
	if (r == 0 && java_recordings_restore(q->data_dir, NULL) == -EINTR)
		r = err_set(err, -EINTR, "interrupted while cleaning up other JVMs");
	return r < 0 ? r : java_collect_start(&info->id, &options, ret_collect, err);
}

/* When the recording is over; 0 before it begins. An interrupt needs a global. */
static uint64_t java_end_ns;

/* The end of the recording cuts waits for the JVM short, as Ctrl-C does. */
static unsigned int java_interrupts(void)
{
	return stop_count() + (java_end_ns && clock_mono_ns() >= java_end_ns);
}

/* Reads continuously: what is read is safe, whatever happens to the JVM. 1: no more data. */
static int java_watch(struct java_collect *c, const struct proc_info *info, uint64_t duration_ns,
		      struct err *err)
{
	uint64_t begin = clock_mono_ns(), read_ns = 0, keep_ns = 0, done;
	int r = 0;

	java_end_ns = begin + duration_ns;
	while (r == 0 && (done = clock_mono_ns() - begin) < duration_ns) {
		term_progress("recording", done, duration_ns);
		clock_sleep_ns(MIN(duration_ns - done, JAVA_STEP_NS));
		done = clock_mono_ns() - begin;
		if (stop_asked()) {
			cli_note("Interrupted after %.1f s; showing what was recorded so far.",
				 (double)done / NS_PER_SEC);
			break;
		}
		if (proc_id_gone(&info->id)) {
			cli_note("Process %d exited after %.1f s.", (int)info->id.pid,
				 (double)done / NS_PER_SEC);
			r = 1;
		}
		if (r == 0 && done - keep_ns >= JAVA_KEEP_NS) {
			keep_ns = done;
			r = java_collect_keep(c, err);
			/* It is stopped for now, or the time is over. */
			if (r == -EAGAIN || (r == -EINTR && !stop_asked()))
				r = 0;
		}
		if (r == 0 && done - read_ns >= JAVA_READ_NS) {
			read_ns = done;
			r = java_collect_read(c, err);
		}
	}
	java_end_ns = MIN(java_end_ns, clock_mono_ns());
	term_status("finishing the recording");
	return r;
}

/* Reads the rest. Cleans up the JVM even on failure. */
static int java_record(const struct java_request *q, struct java_collect *c,
		       const struct proc_info *info, struct java_collect_window *ret_window,
		       struct err *err)
{
	int r = java_watch(c, info, q->duration_ns, err);
	struct err later = {};
	char line[ERR_LINE_MAX];
	int stopped;

	if (r == 0)
		r = java_collect_finish(c, err);
	/*
	 * The user's own recording takes precedence, and nobody waits for a JVM that does not
	 * answer; show what we have so far.
	 */
	if (r == -EBUSY || r == -EINTR || r == -EAGAIN || r == -ETIMEDOUT) {
		cli_note("Stopped early: %s.", err_describe(err, r, line));
		r = 1;
	}
	if (r >= 0)
		r = java_collect_read(c, err);
	/* What was read before remains valid. */
	if (r == -ESRCH)
		r = 0;
	*ret_window = java_collect_window(c);
	stopped = java_collect_stop(c, &later);
	term_status(NULL);
	if (stopped < 0 && !proc_id_gone(&info->id))
		cli_note("Could not remove everything from the JVM; the next sonde tries again: %s",
			 err_describe(&later, stopped, line));
	return r;
}

static void java_tell_hidden(struct java_collect *c)
{
	static const char why[] = "JDK 8 does not record all allocations of compiled code. Start "
				  "it with -XX:+UseG1GC or -XX:-FastTLABRefill.";
	char label[UNITS_LABEL_LEN];
	unsigned int percent;
	uint64_t bytes;

	if (!java_collect_hidden(c, &bytes, &percent))
		return;
	if (percent)
		cli_note("Missing: at least %u%% of allocations (%s): %s", percent,
			 units_label(label, (int64_t)bytes, "bytes", "auto"), why);
	else
		cli_note("Some allocations may be missing: %s", why);
}

static void java_tell(const struct java_request *q, struct java_collect *c, const struct profile *p)
{
	struct java_collect_stats s;
	char label[UNITS_LABEL_LEN];

	java_collect_stats(c, &s);
	if (profile_n_samples(p) == 0)
		cli_note("The profile is empty: nothing was recorded.");
	if (q->kind == JAVA_JFR_PROFILE_ALLOC && s.profiler.first_samples)
		cli_note("Omitted: the first sample of %llu threads, which covers allocations "
			 "before the recording (%s).",
			 (unsigned long long)s.profiler.first_samples,
			 units_label(label, (int64_t)s.profiler.first_bytes, "bytes", "auto"));
	if (q->kind == JAVA_JFR_PROFILE_ALLOC)
		java_tell_hidden(c);
	if (q->kind == JAVA_JFR_PROFILE_CPU && s.profiler.cpu_dropped)
		cli_note("Lost: %llu samples, dropped by the JVM.",
			 (unsigned long long)s.profiler.cpu_dropped);
	if (q->kind == JAVA_JFR_PROFILE_LOCK && s.profiler.idle_waits)
		cli_note("Omitted: %llu waits of idle threads (%s).",
			 (unsigned long long)s.profiler.idle_waits,
			 units_label(label, s.profiler.idle_ns, "nanoseconds", "auto"));
	if (q->kind == JAVA_JFR_PROFILE_LOCK && s.is_calm)
		cli_note("Waits for java.util.concurrent below %u ms are missing: idle threads "
			 "wait so often that recording them would cost too much.",
			 JAVA_RECORDING_CALM_MS);
	if (q->kind == JAVA_JFR_PROFILE_LOCK && s.no_parks)
		cli_note("Locks of java.util.concurrent are missing: this JVM hides them.");
	if (s.dropped)
		cli_note("Lost: %llu events; the buffer in the JVM was full.",
			 (unsigned long long)s.dropped);
	if (s.profiler.lost)
		cli_note("Lost: %llu events; the memory limit was reached.",
			 (unsigned long long)s.profiler.lost);
	if (s.unread)
		cli_note("Lost: %llu invalid events.", (unsigned long long)s.unread);
	if (s.broken)
		cli_note("Lost: %llu unreadable files: %s", (unsigned long long)s.broken, s.why);
}

static const char *java_collector_text(const struct java_collect *c)
{
	const char *collector = java_collect_name(c);

	switch (java_collect_choice(c)) {
	case JAVA_COLLECT_NO_RECORDER:
		return "sonde's JVMTI library (this JVM has no recorder)";
	case JAVA_COLLECT_GENTLE:
		return "sonde's JVMTI library (its recorder would slow it down for seconds)";
	case JAVA_COLLECT_COSTLY:
		return "Flight Recorder, whose first start slows this JVM down for seconds";
	default:
		return strcmp(collector, "jfr") == 0 ? "Flight Recorder" : collector;
	}
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
		return cmd_cpu_java_profile(q->pid, q->data_dir, q->duration_ns, &q->report, err);
	if (r < 0)
		return r;
	/* From here on there is something to clean up. */
	stop_catch_signals();
	java_attach_set_interrupt(java_interrupts);
	term_status("connecting to the JVM");
	r = java_start(q, &info, &c, err);
	term_status(NULL);
	if (r < 0)
		return r;
	cli_note("%s (pid %d): %s %s, by %s", info.service, (int)info.id.pid,
		 java_collect_vm(c)->name, java_collect_vm(c)->version, java_collector_text(c));
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
	int r = java_parse(args, &q, &err), code;

	if (r < 0)
		return cli_fail_usage("java", &err);
	r = report_check_output(&q.report, &err);
	if (r == 0)
		r = java_profile(&q, &err);
	if (r == -EINVAL)
		return cli_fail_usage("java", &err);
	if (r == 0)
		return CLI_OK;
	code = cli_fail(r, &err);
	/* Someone else is at work in the JVM: its user, or another sonde. */
	return r == -EBUSY ? CLI_NOT_PROFILEABLE : code;
}

const struct cli_command cmd_java = {
	.name = "java",
	.summary = "Profile allocations, lock waits or CPU time of a Java process",
	.operands = "PID [alloc|lock|cpu]",
	.min_operands = 1,
	.max_operands = 2,
	.options = java_options,
	.n_options = ARRAY_SIZE(java_options),
	.notes =
		"Works with HotSpot since JDK 8u262, without flags or a restart. Needs root.\n"
		"The first recording of a JVM makes it compile all its code anew. So a JVM that\n"
		"has not recorded yet gets a small library from sonde. Any other is recorded by\n"
		"its own Flight Recorder, into a small tmpfs that sonde mounts in the process's\n"
		"/tmp and removes at the end. cpu works like `sonde cpu --java`, except on JDK 25\n"
		"and later with the recorder.\n"
		"SONDE_JAVA=off in a process's environment opts it out.\n"
		"\n"
		"Examples:\n"
		"  sonde java 4242                          top allocators over 30 s\n"
		"  sonde java 4242 lock -d 1m -f tree       lock waits, as a call tree\n"
		"  sonde java 4242 alloc -f pprof -o alloc.pb.gz\n",
	.run = java_run,
};
