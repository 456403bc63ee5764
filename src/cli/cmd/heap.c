/*
 * src/cli/cmd/heap.c: `sonde heap`: the heap profile of a Go process or core file.
 *
 * Reads once; with --diff twice, and shows the difference. --force turns on sampling temporarily;
 * nothing else changes a target.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/go/heap_rate.h"
#include "cli/go/heap_target.h"
#include "cli/go/rate.h"
#include "cli/render/report.h"
#include "cli/render/units.h"
#include "cli/stop.h"
#include "profile/ops.h"

#define HEAP_DEFAULT_WAIT_NS (10 * NS_PER_SEC)

enum {
	HEAP_DIFF = REPORT_N,
	HEAP_FORCE,
	HEAP_RATE,
	HEAP_WAIT,
	HEAP_KEEP,
	HEAP_TARGET,
	HEAP_N = HEAP_TARGET + GO_TARGET_N,
};

static const struct cli_option heap_options[HEAP_N] = {
	REPORT_OPTIONS("inuse_space (default), inuse_objects, alloc_space or alloc_objects"),
	[HEAP_DIFF] = {.name = "diff",
		       .arg = "DURATION",
		       .help = "read twice, DURATION apart, and show the difference"},
	[HEAP_FORCE] = {.name = "force",
			.help = "turn sampling on temporarily if the program has it off"},
	[HEAP_RATE] = {.name = "rate",
		       .arg = "BYTES",
		       .help = "with --force: bytes per sample (default 524288)"},
	[HEAP_WAIT] = {.name = "wait",
		       .arg = "DURATION",
		       .help = "with --force: how long to sample (default 10s)"},
	[HEAP_KEEP] = {.name = "keep", .help = "with --force: leave sampling on"},
	GO_TARGET_OPTIONS(HEAP_TARGET),
};

struct heap_request {
	struct report report;
	struct go_target go;
	uint64_t diff_ns; /* 0: one reading */
	uint64_t wait_ns;
	int64_t rate;
	bool rate_given;
	bool force;
	bool keep;
};

static int heap_parse_type(const struct report *report, struct err *err)
{
	static const enum type_id types[] = {TYPE_GO_HEAP_INUSE_SPACE, TYPE_GO_HEAP_INUSE_OBJECTS,
					     TYPE_GO_HEAP_ALLOC_SPACE, TYPE_GO_HEAP_ALLOC_OBJECTS};

	return report_check_type(report->type, types, ARRAY_SIZE(types), err);
}

static int heap_parse_timing(const struct cli_args *args, struct heap_request *q, struct err *err)
{
	uint64_t rate = GOLANG_DEFAULT_RATE;
	int r = 0;

	q->wait_ns = HEAP_DEFAULT_WAIT_NS;
	q->force = args->values[HEAP_FORCE] != NULL;
	q->keep = args->values[HEAP_KEEP] != NULL;
	q->rate_given = args->values[HEAP_RATE] != NULL;
	if (!q->force && (q->keep || q->rate_given || args->values[HEAP_WAIT]))
		return err_set(err, -EINVAL, "--rate, --wait and --keep require --force");
	if (args->values[HEAP_DIFF] && args->values[HEAP_WAIT])
		return err_set(err, -EINVAL,
			       "--diff and --wait cannot be combined; --diff sets the duration");
	if (q->go.core && (q->force || args->values[HEAP_DIFF]))
		return err_set(err, -EINVAL,
			       "--force and --diff need a running process, not a core file");
	if (args->values[HEAP_DIFF])
		r = cli_parse_duration("--diff", args->values[HEAP_DIFF], &q->diff_ns, err);
	if (r == 0 && args->values[HEAP_WAIT])
		r = cli_parse_duration("--wait", args->values[HEAP_WAIT], &q->wait_ns, err);
	if (r == 0 && q->rate_given)
		r = cli_parse_number("--rate", args->values[HEAP_RATE], INT_MAX, &rate, err);
	q->rate = (int64_t)rate;
	return r;
}

static int heap_parse(const struct cli_args *args, struct heap_request *q, struct err *err)
{
	int r;

	*q = (struct heap_request){};
	r = report_parse(args, &q->report, err);
	if (r == 0)
		r = heap_parse_type(&q->report, err);
	if (r == 0)
		r = go_target_parse("heap", args, HEAP_TARGET, &q->go, err);
	if (r == 0)
		r = heap_parse_timing(args, q, err);
	if (r == 0 && !q->report.type)
		q->report.type = registry_types[TYPE_GO_HEAP_INUSE_SPACE].name;
	return r;
}

static int heap_read_profile(struct heap_target *t, struct profile **ret_profile, struct err *err)
{
	int r = golang_heap_read(t->heap, err);

	return r < 0 ? r : golang_heap_profile(t->heap, ret_profile, err);
}

/* inuse_objects and inuse_space; golang/heap/heap.h defines the order of types. */
#define HEAP_FIRST_INUSE 2
#define HEAP_INUSE_TYPES (3U << HEAP_FIRST_INUSE)

static void heap_say_cycles(const struct golang_heap_stats *now, uint64_t before)
{
	if (now->before_first_gc || now->cycle > before + 1)
		return;
	if (now->cycle == before)
		cli_note("No garbage collection finished, and Go updates its heap profile only "
			 "then; wait longer.");
	else
		cli_note("Only one garbage collection finished, and Go may show an allocation only "
			 "after the second; wait longer if some are missing.");
}

/*
 * What was sampled before is in use without having been allocated since: the start of the program,
 * or an earlier --force. No more of a stack can be in use than it has allocated.
 */
static int heap_without_earlier(struct profile *p, struct profile **ret_profile, struct err *err)
{
	const struct profile_term term = {.profile = p, .factor = 1};

	for (size_t i = 0; i < profile_n_samples(p); i++) {
		const int64_t *values = profile_sample_at(p, i)->values;

		for (size_t type = 0; type < HEAP_FIRST_INUSE; type++)
			if (values[HEAP_FIRST_INUSE + type] > values[type])
				profile_set_value(p, i, HEAP_FIRST_INUSE + type, values[type]);
	}
	/* Drops what is all zero now. */
	return profile_merge(&term, 1, ret_profile, err);
}

/*
 * Reads twice and subtracts; the time in between is the profile's duration. Types in absolute come
 * from the second read alone.
 */
static int heap_read_twice(const struct heap_request *q, struct heap_target *t, uint32_t absolute,
			   struct profile **ret_profile, struct err *err)
{
	_cleanup_(profile_freep) struct profile *before = NULL;
	_cleanup_(profile_freep) struct profile *after = NULL;
	_cleanup_(profile_freep) struct profile *change = NULL;
	uint64_t cycle;
	int r;

	r = heap_read_profile(t, &before, err);
	if (r < 0)
		return r;
	cycle = golang_heap_stats(t->heap)->cycle;
	r = heap_rate_wait("waiting", q->diff_ns ? q->diff_ns : q->wait_ns, &t->go.info.id, err);
	if (r == 0)
		r = heap_read_profile(t, &after, err);
	if (r == 0) {
		const struct profile_term terms[] = {
			{.profile = before, .factor = -1, .without_types = absolute},
			{.profile = after, .factor = 1},
		};

		r = profile_merge(terms, ARRAY_SIZE(terms), &change, err);
	}
	if (r < 0)
		return r;
	profile_header(change)->duration_ns =
		profile_header(after)->time_ns - profile_header(before)->time_ns;
	heap_say_cycles(golang_heap_stats(t->heap), cycle);
	if (!absolute) {
		*ret_profile = TAKE_PTR(change);
		return 0;
	}
	return heap_without_earlier(change, ret_profile, err);
}

/* Turns sampling on; *rate restores it. */
static int heap_force(const struct heap_request *q, struct heap_target *t, struct go_rate *rate,
		      struct err *err)
{
	char label[UNITS_LABEL_LEN];
	int r = go_rate_force(rate, (struct golang_rate_of){.heap = t->heap}, &t->go.info.id,
			      q->rate, err);

	if (r < 0)
		return r;
	golang_heap_scale_by(t->heap, q->rate);
	units_label(label, q->rate, "bytes", "auto");
	if (rate->hold.note.old == 0)
		cli_note("Sampling is now on (%s per sample); objects allocated earlier are not "
			 "seen.",
			 label);
	else
		cli_note("Sampling is now at %s; only the difference is shown. In-use values also "
			 "count frees of older samples.",
			 label);
	if (q->keep)
		cli_note("Sampling stays on (--keep).");
	return 0;
}

static int heap_collect(const struct heap_request *q, struct heap_target *t,
			struct profile **ret_profile, struct err *err)
{
	_cleanup_(go_rate_release) struct go_rate rate = GO_RATE_NONE("sampling rate", q->keep);
	bool forced = false;
	int64_t now = 0;
	int r = 0;

	if (q->force) {
		stop_catch_signals();
		r = go_rate_prepare(&rate, err);
	}
	if (r == 0)
		r = golang_heap_rate(t->heap, &now, err);
	if (r < 0)
		return r;
	if (q->force && (now == 0 || (q->rate_given && q->rate != now))) {
		r = heap_force(q, t, &rate, err);
		now = rate.hold.note.old;
		forced = true;
	} else if (q->force) {
		cli_note("Sampling is already on; --force has no effect.");
	} else if (now == 0) {
		/* A few early samples may exist; they are meaningless. */
		r = err_lack(err, -ENOTSUP, ERR_CAUSE_PROFILING_OFF,
			     q->go.core ? "" : "use --force to turn it on temporarily",
			     "memory profiling is off in this process");
	}
	if (r < 0)
		return r;
	/*
	 * Nothing was sampled before, except by an earlier --force: objects of it freed meanwhile
	 * must not be subtracted from what is in use now.
	 */
	if (forced || q->diff_ns)
		return heap_read_twice(q, t,
				       forced && now == 0 && !q->diff_ns ? HEAP_INUSE_TYPES : 0,
				       ret_profile, err);
	return heap_read_profile(t, ret_profile, err);
}

static void heap_explain_empty(const struct heap_request *q, const struct heap_target *t,
			       const struct profile *p)
{
	const struct golang_heap_stats *s = &t->stats;
	char label[UNITS_LABEL_LEN];

	if (profile_n_samples(p) != 0)
		return;
	if (q->diff_ns || q->force)
		cli_note("The profile is empty: nothing changed in between.");
	else
		cli_note("The profile is empty: Go samples about one allocation per %s, and this "
			 "process has allocated too little.",
			 units_label(label, s->rate, "bytes", "auto"));
}

static int heap_run(const struct cli_args *args)
{
	_cleanup_(heap_target_release) struct heap_target target = {};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct render_source source;
	struct heap_request q;
	struct err err = {};
	int r;

	r = heap_parse(args, &q, &err);
	if (r < 0)
		return cli_fail_usage("heap", &err);
	r = report_check_output(&q.report, &err);
	if (r == 0)
		r = heap_target_open(&q.go, &target, &err);
	if (r == 0)
		r = heap_collect(&q, &target, &p, &err);
	if (r < 0)
		return cli_fail(r, &err);
	heap_target_finish(&target);
	heap_target_describe(&target);
	heap_explain_empty(&q, &target, p);
	source = (struct render_source){.process = q.go.core ? NULL : &target.go.info,
					.facts = golang_process_facts(target.go.process),
					.stats = &target.stats,
					.core = q.go.core};
	q.report.source = &source;
	r = report_write(&q.report, p, &err);
	heap_target_report_losses(&target);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_heap = {
	.name = "heap",
	.summary = "Show the heap profile of a Go process or core file",
	.operands = "PID | --core FILE",
	.max_operands = 1,
	.options = heap_options,
	.n_options = ARRAY_SIZE(heap_options),
	.notes = "Examples:\n"
		 "  sonde heap 1234                          memory in use, by function\n"
		 "  sonde heap 1234 -t alloc_space -f tree   all allocations, as a call tree\n"
		 "  sonde heap 1234 -f pprof -o heap.pb.gz   a file for `go tool pprof`\n"
		 "  sonde heap 1234 --diff 30s               what grew within 30 s\n",
	.run = heap_run,
};
