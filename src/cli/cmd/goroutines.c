/*
 * src/cli/cmd/goroutines.c: `sonde goroutines`: what the goroutines of a Go process or core file
 * wait for.
 *
 * Reads once; with --diff four times, to tell what only grows from what comes and goes.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/go/goroutines.h"
#include "cli/go/heap_rate.h"
#include "cli/go/target.h"
#include "cli/render/report.h"
#include "profile/ops.h"

#define GOROUTINES_MAX_TEXT ((size_t)1 << 30)

enum {
	GOROUTINES_STATE = REPORT_N,
	GOROUTINES_OLDER,
	GOROUTINES_DIFF,
	GOROUTINES_SYSTEM,
	GOROUTINES_MAX,
	GOROUTINES_TARGET,
	GOROUTINES_N = GOROUTINES_TARGET + GO_TARGET_N,
};

static const struct cli_option goroutines_options[GOROUTINES_N] = {
	[REPORT_TYPE] = {.letter = 't', .name = "type", .arg = "TYPE", .help = "goroutine"},
	[REPORT_FORMAT] = {.letter = 'f',
			   .name = "format",
			   .arg = "FORMAT",
			   .help = "top (default), tree, full, collapsed, pprof or json"},
	[REPORT_OUTPUT] = {.letter = 'o',
			   .name = "output",
			   .arg = "FILE",
			   .help = "output file; - is standard output"},
	[REPORT_NODES] = {.letter = 'n',
			  .name = "nodes",
			  .arg = "N",
			  .help = "show at most N rows, 0: all (default: what fits the terminal)"},
	[REPORT_ALL_NODES] = {.letter = 'a',
			      .name = "all-nodes",
			      .help = "with -f tree: include nodes below 0.5% of the total"},
	[GOROUTINES_STATE] =
		{.name = "state",
		 .arg = "STATE",
		 .help = "only this state or wait reason, such as running or 'select'"},
	[GOROUTINES_OLDER] = {.name = "older",
			      .arg = "DURATION",
			      .help = "only those known to have waited at least this long"},
	[GOROUTINES_DIFF] = {.name = "diff",
			     .arg = "DURATION",
			     .help = "read several times over DURATION and report likely leaks"},
	[GOROUTINES_SYSTEM] = {.name = "system", .help = "include the runtime's own goroutines"},
	[GOROUTINES_MAX] = {.name = "max",
			    .arg = "N",
			    .help = "read the stacks of about N goroutines at most"},
	GO_TARGET_OPTIONS(GOROUTINES_TARGET),
};

/* Formats of this command only; the others are common to all profiles. */
enum goroutines_format { FORMAT_TOP, FORMAT_FULL, FORMAT_JSON, FORMAT_PROFILE };

struct goroutines_request {
	struct report report;
	enum goroutines_format format;
	struct go_target go;
	struct golang_goroutines_options reader;
	const char *state;
	uint64_t older_ns;
	uint64_t diff_ns; /* 0: one reading */
};

struct goroutines_target {
	struct go_target go;
	struct golang_goroutines *goroutines;
};

static void target_release(struct goroutines_target *t)
{
	golang_goroutines_free(t->goroutines);
	go_target_release(&t->go);
}

static int parse_format(const struct cli_args *args, struct goroutines_request *q, struct err *err)
{
	const char *name = args->values[REPORT_FORMAT];
	struct cli_args rest = *args;
	int r;

	q->format = FORMAT_PROFILE;
	if (!name || strcmp(name, "top") == 0)
		q->format = FORMAT_TOP;
	else if (strcmp(name, "full") == 0)
		q->format = FORMAT_FULL;
	else if (strcmp(name, "json") == 0)
		q->format = FORMAT_JSON;
	else if (strcmp(name, "tree") != 0 && strcmp(name, "collapsed") != 0 &&
		 strcmp(name, "pprof") != 0)
		return err_set(err, -EINVAL,
			       "unknown format '%s'; use top, tree, full, collapsed, pprof or json",
			       name);
	if (q->format != FORMAT_PROFILE)
		rest.values[REPORT_FORMAT] = NULL;
	r = report_parse(&rest, &q->report, err);
	return r < 0 ? r
		     : report_check_type(q->report.type, &(enum type_id){TYPE_GOROUTINE_ALL}, 1,
					 err);
}

static int parse_choice(const struct cli_args *args, struct goroutines_request *q, struct err *err)
{
	int r = 0;

	q->state = args->values[GOROUTINES_STATE];
	q->reader = (struct golang_goroutines_options){
		.system = args->values[GOROUTINES_SYSTEM] != NULL,
		.labels = q->format != FORMAT_TOP,
	};
	if (args->values[GOROUTINES_OLDER])
		r = cli_parse_duration("--older", args->values[GOROUTINES_OLDER], &q->older_ns,
				       err);
	if (r == 0 && args->values[GOROUTINES_DIFF])
		r = cli_parse_duration("--diff", args->values[GOROUTINES_DIFF], &q->diff_ns, err);
	if (r == 0 && args->values[GOROUTINES_MAX])
		r = cli_parse_number("--max", args->values[GOROUTINES_MAX], UINT32_MAX,
				     &q->reader.max, err);
	if (r == 0 && q->go.core && q->diff_ns)
		r = err_set(err, -EINVAL, "--diff needs a running process, not a core file");
	return r;
}

static int goroutines_parse(const struct cli_args *args, struct goroutines_request *q,
			    struct err *err)
{
	int r;

	*q = (struct goroutines_request){};
	r = parse_format(args, q, err);
	if (r == 0)
		r = go_target_parse("goroutines", args, GOROUTINES_TARGET, &q->go, err);
	if (r == 0)
		r = parse_choice(args, q, err);
	return r;
}

static int target_open(const struct goroutines_request *q, struct goroutines_target *t,
		       struct err *err)
{
	int r;

	t->go = q->go;
	r = go_target_open(&t->go, err);
	if (r < 0)
		return r;
	r = golang_goroutines_new(t->go.process, &q->reader, &t->goroutines, err);
	if (r == -ENOTSUP && !q->go.core)
		return err_prefix(err, r, "process %d (%s)", (int)q->go.pid, t->go.info.comm);
	return r;
}

static bool keep(void *context, const struct golang_goroutine *g)
{
	const struct goroutines_request *q = context;

	if (g->wait_ns < q->older_ns)
		return false;
	return !q->state || strcmp(q->state, golang_g_state_name(g->state)) == 0 ||
	       strcmp(q->state, g->wait_reason) == 0;
}

static int reading(const struct goroutines_request *q, struct goroutines_target *t,
		   struct goroutines_view *v, struct profile **ret_profile, struct err *err)
{
	int r = golang_goroutines_read(t->goroutines, err);

	if (r < 0)
		return r;
	if (q->format == FORMAT_PROFILE)
		return golang_goroutines_profile(t->goroutines, false, v->keep, v->context,
						 ret_profile, err);
	return goroutines_view_add(v, err);
}

/* Profiles need the first and last read; tables several, because a leak must never shrink. */
static int readings(const struct goroutines_request *q, struct goroutines_target *t,
		    struct goroutines_view *v, struct profile **ret_profile, struct err *err)
{
	_cleanup_(profile_freep) struct profile *before = NULL;
	_cleanup_(profile_freep) struct profile *after = NULL;
	size_t n = q->format == FORMAT_PROFILE ? 2 : GOROUTINES_MAX_READINGS;
	uint64_t epoch;
	int r;

	r = reading(q, t, v, q->diff_ns ? &before : ret_profile, err);
	if (r < 0 || !q->diff_ns)
		return r;
	epoch = golang_goroutines_stats(t->goroutines)->epoch;
	for (size_t i = 1; i < n && r == 0; i++) {
		r = heap_rate_wait("waiting", q->diff_ns / (n - 1), &t->go.info.id, err);
		if (r == 0)
			r = reading(q, t, v, &after, err);
	}
	if (r < 0)
		return r;
	if (golang_goroutines_stats(t->goroutines)->epoch != epoch)
		return err_set(err, -E2BIG, "too many distinct goroutine stacks to compare");
	return q->format == FORMAT_PROFILE ? profile_diff(before, after, ret_profile, err) : 0;
}

static int write_text(const struct goroutines_request *q, const struct buf *text, struct err *err)
{
	struct io_file file;
	int r;

	if (!q->report.path || strcmp(q->report.path, "-") == 0)
		return report_print(text, err);
	r = io_file_create(q->report.path, &file, err);
	if (r < 0)
		return r;
	r = io_file_append(&file, buf_view(text), err);
	if (r == 0)
		return io_file_commit(&file, err);
	io_file_abort(&file);
	return r;
}

static int show(const struct goroutines_request *q, const struct goroutines_target *t,
		const struct goroutines_view *v, struct profile *p, struct err *err)
{
	const struct goroutines_source source = {
		.process = q->go.core ? NULL : &t->go.info,
		.facts = golang_process_facts(t->go.process),
		.core = q->go.core,
	};
	_cleanup_(buf_release) struct buf text = buf_with_max(GOROUTINES_MAX_TEXT);
	int r;

	switch (q->format) {
	case FORMAT_PROFILE:
		return report_write(&q->report, p, err);
	case FORMAT_FULL:
		r = goroutines_full(v, &text, err);
		break;
	case FORMAT_JSON:
		r = goroutines_json(v, &source, &text, err);
		break;
	default:
		r = goroutines_top(v, &q->report, &text, err);
	}
	return r < 0 ? r : write_text(q, &text, err);
}

static void describe(const struct goroutines_target *t)
{
	char name[GO_TARGET_NAME_LEN];

	cli_note("%s: %s, goroutines found by %s", go_target_name(&t->go, name),
		 golang_process_facts(t->go.process)->version,
		 golang_goroutines_how(t->goroutines));
}

static void report_losses(const struct golang_goroutines_stats *s)
{
	if (s->sampled)
		cli_note("Sampled: read %llu stacks of %llu goroutines (--max).",
			 (unsigned long long)s->sampled, (unsigned long long)s->total);
	if (s->cut)
		cli_note("Truncated: %llu goroutine%s a stack of more than %llu frames; the outer "
			 "ones are left out, as in Go's own profile (GODEBUG=profstackdepth).",
			 (unsigned long long)s->cut, s->cut > 1 ? "s have" : " has",
			 (unsigned long long)s->depth);
	if (s->unverified)
		cli_note("Unverified: %llu goroutine%s kept changing while being read; counted "
			 "without a stack.",
			 (unsigned long long)s->unverified, s->unverified > 1 ? "s" : "");
	if (s->incomplete)
		cli_note(
			"Lost: %llu stack%s could not be walked to the goroutine's entry function.",
			(unsigned long long)s->incomplete, s->incomplete > 1 ? "s" : "");
	if (s->bad)
		cli_note("Lost: %llu invalid record%s.", (unsigned long long)s->bad,
			 s->bad > 1 ? "s" : "");
	if (s->labels_lost)
		cli_note("Lost: the labels of %llu goroutine%s.",
			 (unsigned long long)s->labels_lost, s->labels_lost > 1 ? "s" : "");
}

static int goroutines_run(const struct cli_args *args)
{
	_cleanup_(target_release) struct goroutines_target target = {};
	_cleanup_(goroutines_view_release) struct goroutines_view view = {};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct goroutines_request q;
	struct err err = {};
	int r;

	r = goroutines_parse(args, &q, &err);
	if (r < 0)
		return cli_fail_usage("goroutines", &err);
	r = report_check_output(&q.report, &err);
	if (r == 0)
		r = target_open(&q, &target, &err);
	if (r < 0)
		return cli_fail(r, &err);
	view = (struct goroutines_view){
		.goroutines = target.goroutines,
		.keep = keep,
		.context = &q,
		/* Label set numbers are valid for one read only. */
		.by_labels = q.format == FORMAT_JSON && !q.diff_ns,
	};
	r = readings(&q, &target, &view, &p, &err);
	if (r < 0)
		return cli_fail(r, &err);
	describe(&target);
	r = show(&q, &target, &view, p, &err);
	report_losses(golang_goroutines_stats(target.goroutines));
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_goroutines = {
	.name = "goroutines",
	.summary = "Show the goroutines of a Go process or core file",
	.operands = "PID | --core FILE",
	.max_operands = 1,
	.options = goroutines_options,
	.n_options = ARRAY_SIZE(goroutines_options),
	.notes = "The process is not stopped. The stack of a running goroutine cannot be read; it\n"
		 "is counted as running, with its entry function. Wait times are known only after\n"
		 "a garbage collection has seen the goroutine waiting.\n",
	.run = goroutines_run,
};
