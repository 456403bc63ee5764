/* src/cli/go/contention.c: see contention.h. */
#include "cli/go/contention.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/go/heap_rate.h"
#include "cli/go/rate.h"
#include "cli/go/target.h"
#include "cli/render/units.h"
#include "cli/stop.h"

#define WAITS_DEFAULT_NS (10 * NS_PER_SEC)

struct waits_request {
	const struct contention_kind *kind;
	struct report report;
	struct go_target go;
	uint64_t diff_ns; /* 0: one reading */
	uint64_t wait_ns;
	uint64_t force; /* as given; 0: do not touch the process */
};

static void waits_request_release(struct waits_request *q)
{
	go_target_release(&q->go);
}

static int waits_parse_timing(const struct cli_args *args, struct waits_request *q, struct err *err)
{
	const char *force = args->values[CONTENTION_FORCE];
	const char *diff = args->values[CONTENTION_DIFF];
	const char *wait = args->values[CONTENTION_WAIT];
	int r = 0;

	q->wait_ns = WAITS_DEFAULT_NS;
	if (wait && !force)
		return err_set(err, -EINVAL, "--wait requires %s", q->kind->force);
	if (diff && wait)
		return err_set(err, -EINVAL,
			       "--diff and --wait cannot be combined; --diff sets the duration");
	if (q->go.core && (force || diff))
		return err_set(err, -EINVAL,
			       "%s and --diff need a running process, not a core file",
			       q->kind->force);
	if (diff)
		r = cli_parse_duration("--diff", diff, &q->diff_ns, err);
	if (r == 0 && wait)
		r = cli_parse_duration("--wait", wait, &q->wait_ns, err);
	if (r == 0 && force)
		r = cli_parse_number(q->kind->force, force, INT_MAX, &q->force, err);
	return r;
}

static int waits_parse(const struct cli_args *args, struct waits_request *q, struct err *err)
{
	int r = report_parse(args, &q->report, err);

	if (r == 0)
		r = report_check_type(q->report.type, q->kind->types, ARRAY_SIZE(q->kind->types),
				      err);
	if (r < 0)
		return r;
	if (!q->report.type)
		q->report.type = registry_types[q->kind->types[0]].name;
	r = go_target_parse(q->kind->command, args, CONTENTION_TARGET, &q->go, err);
	return r < 0 ? r : waits_parse_timing(args, q, err);
}

/* Reads twice; the time in between is the profile's duration. */
static int waits_read_twice(const struct waits_request *q, struct golang_contention *c,
			    struct profile **ret_profile, struct err *err)
{
	_cleanup_(profile_freep) struct profile *before = NULL;
	_cleanup_(profile_freep) struct profile *change = NULL;
	int r;

	r = golang_contention_read(c, err);
	if (r == 0)
		r = golang_contention_delta_profile(c, &before, err);
	if (r == 0)
		r = heap_rate_wait("waiting", q->diff_ns ? q->diff_ns : q->wait_ns, &q->go.info.id,
				   err);
	if (r == 0)
		r = golang_contention_read(c, err);
	if (r == 0)
		r = golang_contention_delta_profile(c, &change, err);
	if (r < 0)
		return r;
	profile_header(change)->duration_ns =
		profile_header(change)->time_ns - profile_header(before)->time_ns;
	*ret_profile = TAKE_PTR(change);
	return 0;
}

static int waits_off(const struct waits_request *q, struct err *err)
{
	if (q->go.core)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_PROFILING_OFF, "",
				"%s profiling was off in this process", q->kind->command);
	return err_lack(err, -ENOTSUP, ERR_CAUSE_PROFILING_OFF, "",
			"%s profiling is off in this process; call %s in the program, or use %s 1 "
			"to turn it on temporarily",
			q->kind->command, q->kind->go_call, q->kind->force);
}

static int waits_force(const struct waits_request *q, struct golang_contention *c,
		       struct go_rate *rate, struct err *err)
{
	int64_t ours = (int64_t)q->force;
	int r;

	stop_catch_signals();
	r = go_rate_prepare(rate, err);
	if (r == 0 && q->kind->kind == GOLANG_BLOCK)
		r = golang_contention_block_rate(c, q->force, &ours, err);
	if (r == 0)
		r = go_rate_force(rate, (struct golang_rate_of){.contention = c}, &q->go.info.id,
				  ours, err);
	if (r == 0)
		cli_note("The process now records waits; earlier ones are not shown.");
	return r;
}

static int waits_collect(const struct waits_request *q, struct golang_contention *c,
			 struct profile **ret_profile, struct err *err)
{
	_cleanup_(go_rate_release) struct go_rate rate = GO_RATE_NONE("rate", false);
	int64_t now;
	int r;

	r = golang_contention_rate(c, &now, err);
	if (r == 0 && q->force)
		r = waits_force(q, c, &rate, err);
	if (r < 0)
		return r;
	if (q->force || (q->diff_ns && now))
		return waits_read_twice(q, c, ret_profile, err);
	r = golang_contention_read(c, err);
	if (r < 0)
		return r;
	if (now == 0 && (q->diff_ns || golang_contention_stats(c)->buckets == 0))
		return waits_off(q, err);
	if (now == 0)
		cli_note("%s profiling is off now; these values were recorded earlier.",
			 q->kind->kind == GOLANG_BLOCK ? "Block" : "Mutex");
	return golang_contention_profile(c, ret_profile, err);
}

/* Describes the recording rate. */
static void waits_rate_label(const struct waits_request *q, const struct golang_contention_stats *s,
			     char *dst, size_t len)
{
	char label[UNITS_LABEL_LEN];

	if (s->rate == 0)
		(void)snprintf(dst, len, "off");
	else if (s->rate == 1)
		(void)snprintf(dst, len, "every event");
	else if (q->kind->kind == GOLANG_MUTEX)
		(void)snprintf(dst, len, "one in %lld events", (long long)s->rate);
	else if (s->ticks_per_second > 0)
		(void)snprintf(dst, len, "one event per %s blocked",
			       units_label(label,
					   (int64_t)((double)s->rate * 1e9 / s->ticks_per_second),
					   "nanoseconds", "auto"));
	else
		(void)snprintf(dst, len, "one event per %lld ticks blocked", (long long)s->rate);
}

static void waits_describe(const struct waits_request *q, const struct golang_contention_stats *s)
{
	const struct golang_facts *facts = golang_process_facts(q->go.process);
	char name[GO_TARGET_NAME_LEN], rate[96];

	waits_rate_label(q, s, rate, sizeof(rate));
	cli_note("%s: %s, runtime variables found by %s, %llu stacks, %s",
		 go_target_name(&q->go, name), facts->version, facts->variables_how,
		 (unsigned long long)s->buckets, rate);
	if (s->ticks_per_second > 0 && strcmp(s->ticks_how, "the program's own") != 0)
		cli_note("Its clock runs at %.6f GHz (%s).", s->ticks_per_second / 1e9,
			 s->ticks_how);
}

static void waits_report_losses(const struct golang_contention_stats *s)
{
	go_target_report_losses(s->bad_buckets, s->incomplete, s->unknown_frames);
	if (s->torn_records)
		cli_note("Unverified: %llu record%s kept changing while being read and may be off "
			 "by one event.",
			 (unsigned long long)s->torn_records, s->torn_records > 1 ? "s" : "");
}

static int waits_report(const struct waits_request *q, struct golang_contention *c,
			struct profile *p, struct err *err)
{
	const struct golang_contention_stats *s = golang_contention_stats(c);
	const struct render_source source = {.process = q->go.core ? NULL : &q->go.info,
					     .facts = golang_process_facts(q->go.process),
					     .core = q->go.core};
	struct report report = q->report;
	int r;

	waits_describe(q, s);
	if (profile_n_samples(p) == 0)
		cli_note("The profile is empty: nothing was recorded%s.",
			 q->diff_ns || q->force ? " in between" : "");
	report.source = &source;
	r = report_write(&report, p, err);
	waits_report_losses(s);
	return r;
}

int contention_run(const struct contention_kind *kind, const struct cli_args *args)
{
	_cleanup_(waits_request_release) struct waits_request q = {.kind = kind};
	_cleanup_(golang_contention_freep) struct golang_contention *c = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err = {};
	int r;

	r = waits_parse(args, &q, &err);
	if (r < 0)
		return cli_fail_usage(kind->command, &err);
	r = report_check_output(&q.report, &err);
	if (r == 0)
		r = go_target_open(&q.go, &err);
	if (r == 0)
		r = golang_contention_new(q.go.process, kind->kind, &c, &err);
	if (r == 0)
		r = waits_collect(&q, c, &p, &err);
	if (r == 0)
		r = waits_report(&q, c, p, &err);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}
