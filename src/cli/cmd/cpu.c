/*
 * src/cli/cmd/cpu.c: `sonde cpu`: CPU profile of a process or of the whole machine; with --offcpu,
 * where threads wait.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/cmd/cpu_java.h"
#include "cli/cmd/cpu_threads.h"
#include "cli/render/report.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "cpu/profiler.h"
#include "proc/aide/aides.h"
#include "profile/ops.h"

#define CPU_DEFAULT_HZ 99
#define CPU_MAX_HZ 9999
#define CPU_DEFAULT_NS (10 * NS_PER_SEC)
#define CPU_DEFAULT_WAIT_NS NS_PER_MS
#define CPU_POLL_MS 100

enum {
	CPU_ALL = REPORT_N,
	CPU_DURATION,
	CPU_HZ,
	CPU_KERNEL,
	CPU_NO_KERNEL,
	CPU_THREADS,
	CPU_NO_LINES,
	CPU_OFFCPU,
	CPU_MIN_WAIT,
	CPU_JAVA,
	CPU_N,
};

static const struct cli_option cpu_options[CPU_N] = {
	REPORT_OPTIONS("cpu (default) or samples; with --offcpu: time (default) or waits"),
	[CPU_ALL] = {.name = "all", .help = "every process on the machine (default without PID)"},
	[CPU_DURATION] = {.letter = 'd',
			  .name = "duration",
			  .arg = "DURATION",
			  .help = "how long to sample (default 10s); Ctrl-C stops early"},
	[CPU_HZ] = {.name = "hz", .arg = "N", .help = "samples per second per CPU (default 99)"},
	[CPU_KERNEL] = {.name = "kernel", .help = "include kernel functions (default)"},
	[CPU_NO_KERNEL] = {.name = "no-kernel", .help = "omit kernel functions"},
	[CPU_THREADS] = {.name = "threads", .help = "split by thread name"},
	[CPU_NO_LINES] = {.name = "no-lines",
			  .help = "skip source lines and inlined calls of native code; faster"},
	[CPU_OFFCPU] = {.name = "offcpu", .help = "show where threads wait instead (off-CPU time)"},
	[CPU_MIN_WAIT] = {.name = "min-wait",
			  .arg = "DURATION",
			  .help = "with --offcpu: ignore shorter waits (default 1ms)"},
	[CPU_JAVA] = {.name = "java",
		      .help = "have JVMs (JDK 17+) name their compiled code in a perf map"},
};

struct cpu_request {
	struct report report;
	struct cpu_profiler_options options;
	uint64_t duration_ns;
	struct proc_info target; /* of one process */
	bool thread_frames;	 /* threads are frames */
	bool java;		 /* JVMs write perf maps, */
	const char *java_dir;	 /* tracked in this directory; NULL: the default */
};

/* Formats without labels: a process or thread is a frame there. */
static bool cpu_format_has_labels(const char *format)
{
	return format && (strcmp(format, "pprof") == 0 || strcmp(format, "json") == 0);
}

static int cpu_parse_target(const struct cli_args *args, struct cpu_request *q, struct err *err)
{
	const char *format = args->values[REPORT_FORMAT];
	uint64_t pid;
	int r;

	if (args->n_operands && args->values[CPU_ALL])
		return err_set(err, -EINVAL, "use either PID or --all, not both");
	if (!args->n_operands) {
		q->options.label_process = true;
		/* The table is about functions. */
		q->options.root_process =
			format && strcmp(format, "top") != 0 && !cpu_format_has_labels(format);
		return 0;
	}
	r = cli_parse_number("PID", args->operands[0], INT_MAX, &pid, err);
	if (r < 0)
		return r;
	q->options.sampler.pid = (pid_t)pid;
	return 0;
}

static int cpu_parse_offcpu(const struct cli_args *args, struct cpu_request *q, struct err *err)
{
	struct cpu_sampler_options *s = &q->options.sampler;

	if (!args->values[CPU_OFFCPU])
		return args->values[CPU_MIN_WAIT]
			       ? err_set(err, -EINVAL, "--min-wait requires --offcpu")
			       : 0;
	if (args->values[CPU_HZ])
		return err_set(err, -EINVAL, "--hz has no effect on --offcpu; use --min-wait");
	s->hz = 0;
	s->offcpu_min_ns = CPU_DEFAULT_WAIT_NS;
	if (!args->values[CPU_MIN_WAIT])
		return 0;
	return cli_parse_duration("--min-wait", args->values[CPU_MIN_WAIT], &s->offcpu_min_ns, err);
}

/* The default first. */
static const enum type_id *cpu_types(const struct cpu_request *q)
{
	static const enum type_id types[2][2] = {{TYPE_CPU_TIME, TYPE_CPU_SAMPLES},
						 {TYPE_OFFCPU_TIME, TYPE_OFFCPU_WAITS}};

	return types[q->options.sampler.offcpu_min_ns > 0];
}

/* Before the wait, so a typo is reported at once. */
static int cpu_check_type(const struct cpu_request *q, struct err *err)
{
	const char *time = registry_types[cpu_types(q)[0]].name;
	const char *count = registry_types[cpu_types(q)[1]].name;
	const char *type = q->report.type;

	if (!type || strcmp(type, time) == 0 || strcmp(type, count) == 0)
		return 0;
	return err_set(err, -EINVAL, "unknown type '%s' %s --offcpu; use %s or %s", type,
		       q->options.sampler.offcpu_min_ns > 0 ? "with" : "without", time, count);
}

static int cpu_parse(const struct cli_args *args, struct cpu_request *q, struct err *err)
{
	uint64_t hz = CPU_DEFAULT_HZ;
	int r;

	*q = (struct cpu_request){.duration_ns = CPU_DEFAULT_NS};
	q->options.lines = !args->values[CPU_NO_LINES];
	q->options.label_threads = args->values[CPU_THREADS] != NULL;
	q->options.sampler.threads = q->options.label_threads;
	q->thread_frames =
		q->options.label_threads && !cpu_format_has_labels(args->values[REPORT_FORMAT]);
	q->java = args->values[CPU_JAVA] != NULL;
	q->options.sampler.kernel = !args->values[CPU_NO_KERNEL];
	if (args->values[CPU_KERNEL] && args->values[CPU_NO_KERNEL])
		return err_set(err, -EINVAL, "use either --kernel or --no-kernel, not both");
	r = report_parse(args, &q->report, err);
	if (r == 0)
		r = cpu_parse_target(args, q, err);
	if (r == 0 && args->values[CPU_DURATION])
		r = cli_parse_duration("--duration", args->values[CPU_DURATION], &q->duration_ns,
				       err);
	if (r == 0 && args->values[CPU_HZ])
		r = cli_parse_number("--hz", args->values[CPU_HZ], CPU_MAX_HZ, &hz, err);
	q->options.sampler.hz = (unsigned int)hz;
	if (r == 0)
		r = cpu_parse_offcpu(args, q, err);
	return r < 0 ? r : cpu_check_type(q, err);
}

/* Samples until the time is over, a signal arrives, or the process exits. */
static int cpu_wait(const struct cpu_request *q, struct cpu_profiler *profiler, struct err *err)
{
	uint64_t start = clock_mono_ns();
	int r = 0;

	stop_catch_signals();
	cpu_profiler_hurry();
	for (;;) {
		uint64_t done = clock_mono_ns() - start;

		if (done >= q->duration_ns)
			break;
		if (stop_asked()) {
			cli_note("Interrupted after %.1f s; showing what was sampled so far.",
				 (double)done / NS_PER_SEC);
			break;
		}
		if (q->target.id.pid && proc_id_gone(&q->target.id)) {
			cli_note("Process %d exited after %.1f s.", (int)q->target.id.pid,
				 (double)done / NS_PER_SEC);
			break;
		}
		term_progress("sampling", done, q->duration_ns);
		r = cpu_profiler_poll(profiler, CPU_POLL_MS, NULL, NULL, err);
		if (r < 0)
			break;
	}
	term_status(NULL);
	return r;
}

/* The profiles of all processes, to be merged. */
struct cpu_profiles {
	struct profile_term *terms;
	size_t len;
	uint64_t lost;
	struct err *err;
};

static void cpu_profiles_release(struct cpu_profiles *p)
{
	for (size_t i = 0; i < p->len; i++)
		profile_free((struct profile *)p->terms[i].profile);
	free(p->terms);
}

static int cpu_profiles_take(void *context, struct cpu_profile *profile)
{
	struct cpu_profiles *p = context;
	struct profile_term *terms = reallocarray(p->terms, p->len + 1, sizeof(*terms));

	if (!terms) {
		profile_free(profile->profile);
		return err_oom(p->err);
	}
	p->terms = terms;
	p->terms[p->len++] = (struct profile_term){.profile = profile->profile, .factor = 1};
	p->lost += profile->lost;
	return 0;
}

/* The result without any sample: formats for programs must still be complete. */
static int cpu_empty(const struct cpu_request *q, struct profile **ret_profile, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	int r = p ? 0 : -ENOMEM;

	/* In the sampler's order, the default last. */
	for (size_t i = 2; i-- > 0 && r == 0;)
		r = registry_type_add(p, cpu_types(q)[i]);
	if (r < 0)
		return err_oom(err);
	profile_header(p)->time_ns = (int64_t)clock_unix_ns();
	*ret_profile = TAKE_PTR(p);
	return 0;
}

static int cpu_merge(const struct cpu_request *q, const struct cpu_profiles *all,
		     struct profile **ret_profile, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int64_t duration_ns = 0;
	int r;

	if (all->len == 0)
		return cpu_empty(q, ret_profile, err);
	for (size_t i = 0; i < all->len; i++)
		duration_ns =
			MAX(duration_ns, profile_header_const(all->terms[i].profile)->duration_ns);
	r = profile_merge(all->terms, all->len, &p, err);
	if (r < 0)
		return r;
	/* The processes ran at the same time. */
	profile_header(p)->duration_ns = duration_ns;
	if (q->thread_frames)
		return cmd_cpu_threads_as_frames(p, q->options.root_process, ret_profile, err);
	*ret_profile = TAKE_PTR(p);
	return 0;
}

static void cpu_say_lost(uint64_t n, const struct cpu_losses *l, const char *why)
{
	if (n)
		cli_note("Lost: %llu of %llu samples %s.", (unsigned long long)n,
			 (unsigned long long)l->samples, why);
}

static void cpu_say_losses(const struct cpu_losses *l, uint64_t lost_memory)
{
	uint64_t stacks = 0;

	cpu_say_lost(l->lost_ring, l, "came faster than they could be read");
	cpu_say_lost(l->lost_table, l, "did not fit into the kernel's table");
	cpu_say_lost(lost_memory, l, "exceeded the memory limit");
	if (l->lost_files)
		cli_note("Skipped: %llu mapped files, too many or too large; their frames are "
			 "unwound by frame pointer only.",
			 (unsigned long long)l->lost_files);
	for (int end = 0; end < CPU_STACK_N; end++)
		stacks += l->ends[end];
	if (stacks > l->ends[CPU_STACK_ROOT])
		cli_note("%.1f%% of %llu stacks are complete; the rest are truncated and end in a "
			 "[bracketed] frame that says why.",
			 100.0 * (double)l->ends[CPU_STACK_ROOT] / (double)stacks,
			 (unsigned long long)stacks);
}

static void cpu_explain_nothing(const struct cpu_request *q)
{
	if (q->options.sampler.offcpu_min_ns)
		cli_note("No wait of that length ended while sampling; lower --min-wait, or sample "
			 "longer with -d.");
	else if (q->target.id.pid)
		cli_note("Process %d used no CPU time; sample longer with -d, or use --offcpu to "
			 "see where it waits.",
			 (int)q->target.id.pid);
	else
		cli_note("Nothing ran; sample longer with -d.");
}

/* Samples and writes the report, followed by what was lost. */
static int cpu_profile(const struct cpu_request *q, struct cpu_profiler *profiler,
		       struct cmd_cpu_java *java, struct err *err)
{
	_cleanup_(cpu_profiles_release) struct cpu_profiles all = {.err = err};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct report report = q->report;
	struct render_source source = {};
	struct cpu_losses losses;
	char host[256] = "";
	int r = cpu_wait(q, profiler, err);

	cmd_cpu_java_finish(java);
	term_status("looking up names");
	if (r == 0)
		r = cpu_profiler_collect(profiler, cpu_profiles_take, &all, err);
	if (r == 0)
		r = cpu_merge(q, &all, &p, err);
	term_status(NULL);
	if (r < 0)
		return r;
	if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
		(void)strcpy(host, "this one");
	text_clean(host, strlen(host));
	cpu_profiler_losses(profiler, &losses);
	source.process = q->target.id.pid ? &q->target : NULL;
	source.machine = q->target.id.pid ? NULL : host;
	source.losses = &losses;
	source.lost_memory = all.lost;
	report.source = &source;
	r = report_write(&report, p, err);
	if (all.len == 0)
		cpu_explain_nothing(q);
	cpu_say_losses(&losses, all.lost);
	cmd_cpu_java_stop(java);
	if (!q->java && q->target.id.pid)
		cmd_cpu_java_explain(&q->target);
	return r;
}

/* Before the first sample, so that it gets a name. */
static int cpu_start_java(const struct cpu_request *q, struct cmd_cpu_java **ret_java,
			  struct err *err)
{
	if (!q->java)
		return 0;
	/* From here on there is something to clean up. */
	stop_catch_signals();
	term_status(q->target.id.pid ? "connecting to the JVM" : "connecting to all JVMs");
	return cmd_cpu_java_start(q->target.id.pid ? &q->target : NULL, q->java_dir, ret_java, err);
}

static int cpu_sample(struct cpu_request *q, struct err *err)
{
	_cleanup_(cpu_profiler_closep) struct cpu_profiler *profiler = NULL;
	_cleanup_(cmd_cpu_java_freep) struct cmd_cpu_java *java = NULL;
	int r = report_check_output(&q->report, err);

	if (r == 0 && q->options.sampler.pid)
		r = proc_info_read(q->options.sampler.pid, &q->target, err);
	if (r == 0)
		r = cpu_start_java(q, &java, err);
	term_status("starting the sampler");
	if (r == 0)
		r = cpu_profiler_open(&q->options, &profiler, err);
	term_status(NULL);
	return r < 0 ? r : cpu_profile(q, profiler, java, err);
}

int cmd_cpu_java_profile(pid_t pid, const char *dir, uint64_t duration_ns,
			 const struct report *report, struct err *err)
{
	struct cpu_request q = {
		.report = *report,
		.options = {.lines = true,
			    .sampler = {.pid = pid, .hz = CPU_DEFAULT_HZ, .kernel = true}},
		.duration_ns = duration_ns,
		.java = true,
		.java_dir = dir,
	};
	int r = cpu_check_type(&q, err);

	return r < 0 ? r : cpu_sample(&q, err);
}

static int cpu_run(const struct cli_args *args)
{
	struct cpu_request q;
	struct err err = {};
	int r = cpu_parse(args, &q, &err);

	if (r < 0)
		return cli_fail_usage("cpu", &err);
	r = cli_begin_many(false, &err);
	if (r == 0)
		r = cpu_sample(&q, &err);
	proc_aides_stop();
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_cpu = {
	.name = "cpu",
	.summary = "Profile the CPU time of a process or of the whole machine",
	.operands = "[PID | --all]",
	.max_operands = 1,
	.options = cpu_options,
	.n_options = ARRAY_SIZE(cpu_options),
	.notes = "Profiles native and JIT-compiled code, Python and the kernel. Programs need no\n"
		 "frame pointers, restart or flags; `sonde ps` shows the limits of each runtime.\n"
		 "Needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.\n"
		 "\n"
		 "flat is time in the function itself; cum includes what it calls. A [bracketed]\n"
		 "frame has no name, or says why the stack is truncated. 100% is one CPU.\n"
		 "\n"
		 "Examples:\n"
		 "  sonde cpu                                the whole machine\n"
		 "  sonde cpu 1234 -d 30s -f tree            one process, as a call tree\n"
		 "  sonde cpu 1234 -f pprof -o cpu.pb.gz     for `go tool pprof`, or for\n"
		 "                                           `go build -pgo=cpu.pb.gz`\n"
		 "  sonde cpu 1234 -f collapsed | flamegraph.pl > cpu.svg\n"
		 "  sonde cpu 1234 --threads                 by thread\n"
		 "  sonde cpu 1234 --offcpu                  where its threads wait\n",
	.run = cpu_run,
};
