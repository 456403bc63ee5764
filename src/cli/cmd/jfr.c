/* src/cli/cmd/jfr.c: `sonde jfr`: the profiles in a Java Flight Recorder recording. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cmd/jfr_summary.h"
#include "cli/render/report.h"
#include "cli/render/units.h"
#include "java/jfr/profiler.h"

#define JFR_MAX_TEXT ((size_t)64 << 20)

static const struct cli_option jfr_options[REPORT_N] = {
	[REPORT_TYPE] = {.letter = 't',
			 .name = "type",
			 .arg = "TYPE",
			 .help = "alloc_space, alloc_objects, delay, contentions, cpu or samples, "
				 "if recorded"},
	[REPORT_FORMAT] = {.letter = 'f',
			   .name = "format",
			   .arg = "FORMAT",
			   .help = "summary (default without a profile), top (default), tree, "
				   "collapsed, pprof or json"},
	[REPORT_OUTPUT] = {.letter = 'o',
			   .name = "output",
			   .arg = "FILE",
			   .help = "output file; - is standard output"},
	[REPORT_NODES] = {.letter = 'n', .name = "nodes", .arg = "N", .help = REPORT_NODES_HELP},
	[REPORT_ALL_NODES] = {.letter = 'a',
			      .name = "all-nodes",
			      .help = "include nodes below 0.5% of the total"},
};

static const struct kind_text {
	const char *name;
	const char *events;
} kinds[JAVA_JFR_PROFILE_N] = {
	[JAVA_JFR_PROFILE_CPU] = {"cpu", "jdk.CPUTimeSample or jdk.ExecutionSample"},
	[JAVA_JFR_PROFILE_ALLOC] = {"alloc",
				    "jdk.ObjectAllocationSample or jdk.ObjectAllocationInNewTLAB"},
	[JAVA_JFR_PROFILE_LOCK] = {"lock", "jdk.JavaMonitorEnter or jdk.ThreadPark"},
};

struct recording {
	const char *path;
	struct java_jfr *jfr;
	struct java_jfr_profiler *profiler;
	struct profile *profiles[JAVA_JFR_PROFILE_N];
	struct java_jfr_profiler_stats stats;
};

static void recording_release(struct recording *rec)
{
	for (int k = 0; k < JAVA_JFR_PROFILE_N; k++)
		profile_free(rec->profiles[k]);
	java_jfr_profiler_free(rec->profiler);
	java_jfr_close(rec->jfr);
}

static int feed_stdin(struct recording *rec, struct err *err)
{
	static uint8_t bytes[64 << 10];
	uint64_t total = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, -errno, "cannot read standard input: %s",
				       strerror(errno));
		total += (uint64_t)n;
		r = java_jfr_feed(rec->jfr, view_of(bytes, (size_t)n), err);
		if (r == 0)
			r = java_jfr_profiler_read(rec->profiler, rec->jfr, err);
	}
	if (r == 0 && java_jfr_stats(rec->jfr)->chunks == 0)
		return err_set(err, -EBADMSG,
			       "standard input is not a complete recording (%llu bytes)",
			       (unsigned long long)total);
	return r;
}

static int open_recording(struct recording *rec, struct err *err)
{
	struct java_jfr_options options = {0};
	int fd;

	options.queries = java_jfr_profiler_queries(&options.n_queries);
	if (strcmp(rec->path, "-") == 0)
		return java_jfr_open_feed("standard input", &options, &rec->jfr, err);
	/* A pipe without a writer must not block us. */
	fd = open(rec->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", rec->path, strerror(errno));
	return java_jfr_open_take(fd, rec->path, &options, &rec->jfr, err);
}

static int read_recording(struct recording *rec, struct err *err)
{
	const struct java_jfr_builder_options options = {.label_threads = true,
							 .label_classes = true};
	const struct java_jfr_stats *stats;
	int r;

	r = open_recording(rec, err);
	if (r == 0)
		r = java_jfr_profiler_new(&options, &rec->profiler, err);
	if (r == 0)
		r = strcmp(rec->path, "-") == 0
			    ? feed_stdin(rec, err)
			    : java_jfr_profiler_read(rec->profiler, rec->jfr, err);
	if (r < 0)
		return r;
	stats = java_jfr_stats(rec->jfr);
	if (stats->chunks == 0)
		return err_set(err, -EBADMSG, "%s has no complete chunk yet", rec->path);
	for (int k = 0; r == 0 && k < JAVA_JFR_PROFILE_N; k++)
		r = java_jfr_profiler_take(rec->profiler, (enum java_jfr_profile_kind)k,
					   stats->start_ns, stats->duration_ns, &rec->profiles[k],
					   err);
	if (r == 0)
		java_jfr_profiler_stats(rec->profiler, &rec->stats);
	return r;
}

static void tell_losses(const struct recording *rec)
{
	const struct java_jfr_stats *stats = java_jfr_stats(rec->jfr);
	unsigned long long unread = stats->malformed;

	unread += stats->unknown;
	if (stats->cut_bytes)
		cli_note("Skipped the last %llu bytes: an incomplete chunk.",
			 (unsigned long long)stats->cut_bytes);
	if (unread)
		cli_note("Skipped %llu unreadable events.", unread);
	if (rec->stats.lost)
		cli_note("Skipped %llu events: the profile reached its memory limit.",
			 (unsigned long long)rec->stats.lost);
}

static void tell_kind(const struct recording *rec, enum java_jfr_profile_kind kind)
{
	const struct java_jfr_profiler_stats *s = &rec->stats;
	char label[UNITS_LABEL_LEN];

	if (!s->events[kind])
		cli_note("The recording has no events for this profile: %s.", kinds[kind].events);
	if (kind == JAVA_JFR_PROFILE_ALLOC && s->first_samples)
		cli_note("Omitted %s of %llu threads: allocated before the recording started.",
			 units_label(label, (int64_t)s->first_bytes, "bytes", "auto"),
			 (unsigned long long)s->first_samples);
	if (kind == JAVA_JFR_PROFILE_CPU && s->events[kind] && !s->cpu_is_time)
		cli_note("These are sample counts, not CPU time: the JVM's sampler looks at only "
			 "some of the running threads.");
	if (kind == JAVA_JFR_PROFILE_CPU && s->cpu_dropped)
		cli_note("The JVM lost %llu samples.", (unsigned long long)s->cpu_dropped);
	if (kind == JAVA_JFR_PROFILE_LOCK && s->idle_waits)
		cli_note("Omitted %llu waits of idle threads (%s).",
			 (unsigned long long)s->idle_waits,
			 units_label(label, s->idle_ns, "nanoseconds", "auto"));
}

/* The requested one, or the first in the recording. */
static int pick_kind(const struct recording *rec, const char *name,
		     enum java_jfr_profile_kind *ret_kind)
{
	*ret_kind = JAVA_JFR_PROFILE_CPU;
	for (int k = 0; k < JAVA_JFR_PROFILE_N; k++)
		if (name ? strcmp(kinds[k].name, name) == 0 : rec->stats.events[k] > 0) {
			*ret_kind = (enum java_jfr_profile_kind)k;
			return 0;
		}
	return name ? -EINVAL : 0;
}

static int write_summary(struct recording *rec, const char *path, struct err *err)
{
	_cleanup_(buf_release) struct buf out = buf_with_max(JFR_MAX_TEXT);
	int r = jfr_summary(rec->path, rec->jfr, rec->profiles, &rec->stats, &out);

	if (r < 0)
		return err_set(err, r, "the summary is too large");
	if (!path || strcmp(path, "-") == 0)
		return report_print(&out, err);
	return io_write_file(path, buf_view(&out), err);
}

static bool wants_summary(const struct cli_args *args)
{
	const char *format = args->values[REPORT_FORMAT];

	return format ? strcmp(format, "summary") == 0 : args->n_operands == 1;
}

static int write_profile(struct recording *rec, const struct report *report, const char *name,
			 struct err *err)
{
	enum java_jfr_profile_kind kind;
	int r = pick_kind(rec, name, &kind);
	size_t type;

	if (r == 0)
		r = report_find_type(rec->profiles[kind], report->type, &type, err);
	if (r < 0)
		return r;
	if (!name)
		cli_note("This is the %s profile.", kinds[kind].name);
	tell_kind(rec, kind);
	return report_write(report, rec->profiles[kind], err);
}

static int jfr_run(const struct cli_args *args)
{
	_cleanup_(recording_release) struct recording rec = {.path = args->operands[0]};
	const char *kind = args->n_operands > 1 ? args->operands[1] : NULL;
	struct cli_args plain = *args;
	enum java_jfr_profile_kind ignored;
	struct report report;
	struct err err = {};
	int r;

	if (wants_summary(args))
		plain.values[REPORT_FORMAT] = NULL;
	r = report_parse(&plain, &report, &err);
	if (r == 0 && kind && pick_kind(&rec, kind, &ignored) < 0)
		r = err_set(&err, -EINVAL, "unknown profile '%s'; use alloc, lock or cpu", kind);
	if (r < 0)
		return cli_fail_usage("jfr", &err);
	r = report_check_output(&report, &err);
	if (r == 0)
		r = read_recording(&rec, &err);
	if (r < 0)
		return cli_fail(r, &err);
	tell_losses(&rec);
	r = wants_summary(args) ? write_summary(&rec, report.path, &err)
				: write_profile(&rec, &report, kind, &err);
	if (r == -EINVAL)
		return cli_fail_usage("jfr", &err);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_jfr = {
	.name = "jfr",
	.summary = "Show a Java Flight Recorder or async-profiler recording",
	.operands = "FILE [alloc|lock|cpu]",
	.min_operands = 1,
	.max_operands = 2,
	.options = jfr_options,
	.n_options = ARRAY_SIZE(jfr_options),
	.notes = "FILE is a .jfr file of JDK 8 or later, or of async-profiler; - is standard "
		 "input.\n"
		 "\n"
		 "Examples:\n"
		 "  sonde jfr app.jfr                        summary\n"
		 "  sonde jfr app.jfr alloc                  top allocators\n"
		 "  sonde jfr app.jfr lock -f tree           lock waits, as a call tree\n"
		 "  sonde jfr app.jfr cpu -f pprof -o cpu.pb.gz\n",
	.run = jfr_run,
};
