/*
 * src/cli/cmd/top.c: `sonde top`: the functions that use the most CPU or memory right now, over all
 * processes. On a terminal a live table with keys, in a pipe one table after another.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/top/guard.h"
#include "cli/top/live.h"
#include "proc/id.h"

#define TOP_DEFAULT_INTERVAL_NS (2 * NS_PER_SEC)
#define TOP_TEXT_ROWS 20
#define TOP_CPU_HZ 99

enum {
	TOP_OPT_TYPE,
	TOP_OPT_INTERVAL,
	TOP_OPT_LINES,
	TOP_OPT_GROUP,
	TOP_OPT_SORT,
	TOP_OPT_SERVICE,
	TOP_OPT_BATCH,
	TOP_OPT_ONCE,
	TOP_OPT_COUNT,
	TOP_OPT_JSON,
	TOP_OPT_N,
};

static const struct cli_option top_options[TOP_OPT_N] = {
	[TOP_OPT_TYPE] =
		{.letter = 't',
		 .name = "type",
		 .arg = "TYPE",
		 .help = "cpu (default), alloc_space, alloc_objects, inuse_space or inuse_objects"},
	[TOP_OPT_INTERVAL] = {.letter = 'd',
			      .name = "interval",
			      .arg = "DURATION",
			      .help = "refresh interval (default 2s)"},
	[TOP_OPT_LINES] =
		{.letter = 'n',
		 .name = "lines",
		 .arg = "N",
		 .help = "show at most N rows (default: fit the screen; 20 in plain text)"},
	[TOP_OPT_GROUP] = {.letter = 'g',
			   .name = "group",
			   .arg = "BY",
			   .help = "function (default), service or process"},
	[TOP_OPT_SORT] = {.letter = 's',
			  .name = "sort",
			  .arg = "BY",
			  .help = "flat (default): the function itself; or cum: with its callees"},
	[TOP_OPT_SERVICE] = {.name = "service",
			     .arg = "NAME",
			     .help = "only processes of this service"},
	[TOP_OPT_BATCH] = {.letter = 'b',
			   .name = "batch",
			   .help = "print tables as plain text (default without a terminal)"},
	[TOP_OPT_ONCE] = {.name = "once", .help = "print one table as plain text and exit"},
	[TOP_OPT_COUNT] = {.letter = 'c',
			   .name = "count",
			   .arg = "N",
			   .help = "exit after N tables; plain text"},
	[TOP_OPT_JSON] = {.name = "json", .help = "print each table as one line of JSON"},
};

struct top_request {
	struct top_view view;
	struct top_feed_config feed;
	struct proc_id ids[CLI_MAX_OPERANDS];
	uint64_t max_rows;
	uint64_t count;
	bool has_type;
	bool batch;
	bool json;
};

/* The index of the value among the names; 0 if there is no value. */
static int top_parse_choice(const char *option, const char *value, const char *const *names,
			    size_t n, size_t *ret_choice, struct err *err)
{
	struct cli_suggestions s = {};
	char known[128] = "";
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (!value || strcmp(value, names[i]) == 0) {
			*ret_choice = i;
			return 0;
		}
		cli_suggestions_offer(&s, value, names[i]);
	}
	if (s.len)
		return err_set(err, -EINVAL, "--%s: unknown value '%s'; did you mean %s?", option,
			       value, s.names[0]);
	for (size_t i = 0; i < n && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 names[i]);
	return err_set(err, -EINVAL, "--%s: unknown value '%s' (expected: %s)", option, value,
		       known);
}

static int top_parse_view(const struct cli_args *args, struct top_view *view, struct err *err)
{
	static const struct {
		enum top_kind kind;
		enum top_unit unit;
	} shown[] = {{TOP_CPU, TOP_BYTES},
		     {TOP_ALLOC, TOP_BYTES},
		     {TOP_ALLOC, TOP_OBJECTS},
		     {TOP_LIVE, TOP_BYTES},
		     {TOP_LIVE, TOP_OBJECTS}};
	static const char *const groups[TOP_GROUPS] = {"function", "service", "process"};
	static const char *const sorts[] = {"flat", "cum"};
	const char *types[ARRAY_SIZE(shown)];
	size_t type = 0, group = 0, sort = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		types[i] = top_type(shown[i].kind, shown[i].unit)->name;
	r = top_parse_choice("type", args->values[TOP_OPT_TYPE], types, ARRAY_SIZE(types), &type,
			     err);
	if (r == 0)
		r = top_parse_choice("group", args->values[TOP_OPT_GROUP], groups,
				     ARRAY_SIZE(groups), &group, err);
	if (r == 0)
		r = top_parse_choice("sort", args->values[TOP_OPT_SORT], sorts, ARRAY_SIZE(sorts),
				     &sort, err);
	if (r < 0)
		return r;
	view->kind = shown[type].kind;
	view->unit = shown[type].unit;
	view->group = (enum top_group)group;
	view->by_total = sort == 1;
	return 0;
}

static int top_parse_interval(const char *value, uint64_t *ret_ns, struct err *err)
{
	int r = 0;

	*ret_ns = TOP_DEFAULT_INTERVAL_NS;
	if (value)
		r = cli_parse_duration("--interval", value, ret_ns, err);
	if (r < 0)
		return r;
	if (*ret_ns < TOP_MIN_INTERVAL_NS || *ret_ns > TOP_MAX_INTERVAL_NS)
		return err_set(err, -EINVAL, "--interval must be between 100ms and 1h, not %s",
			       value);
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct proc_id *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int top_parse_pids(const struct cli_args *args, struct top_request *q, struct err *err)
{
	uint64_t pid;

	for (size_t i = 0; i < args->n_operands; i++) {
		int r = cli_parse_number("PID", args->operands[i], INT_MAX, &pid, err);

		if (r < 0)
			return r;
		q->ids[i].pid = (pid_t)pid;
	}
	qsort(q->ids, args->n_operands, sizeof(*q->ids), compare_ids);
	for (size_t i = 0; i < args->n_operands; i++)
		if (!i || q->ids[i].pid != q->ids[i - 1].pid)
			q->ids[q->feed.n_ids++] = q->ids[i];
	q->feed.ids = q->ids;
	return 0;
}

static int top_parse(const struct cli_args *args, struct top_request *q, struct err *err)
{
	const char *lines = args->values[TOP_OPT_LINES], *count = args->values[TOP_OPT_COUNT];
	int r = top_parse_view(args, &q->view, err);

	if (r == 0)
		r = top_parse_interval(args->values[TOP_OPT_INTERVAL], &q->feed.interval_ns, err);
	if (r == 0 && lines)
		r = cli_parse_number("--lines", lines, UINT32_MAX, &q->max_rows, err);
	if (r == 0 && count)
		r = cli_parse_number("--count", count, UINT32_MAX, &q->count, err);
	if (r == 0)
		r = top_parse_pids(args, q, err);
	if (r < 0)
		return r;
	if (args->values[TOP_OPT_ONCE] && count)
		return err_set(err, -EINVAL, "--once and --count cannot be combined");
	if (args->values[TOP_OPT_ONCE])
		q->count = 1;
	q->json = args->values[TOP_OPT_JSON];
	q->feed.service = args->values[TOP_OPT_SERVICE];
	/* A terminal that cannot move its cursor is treated as a pipe. */
	q->batch = q->json || q->count || args->values[TOP_OPT_BATCH] || !isatty(STDIN_FILENO) ||
		   !term_is_screen(STDOUT_FILENO);
	if (q->batch && !q->json && !lines)
		q->max_rows = TOP_TEXT_ROWS;
	q->has_type = args->values[TOP_OPT_TYPE];
	/* On a terminal a key can select it. */
	if (!q->batch || q->view.kind == TOP_CPU)
		q->feed.cpu_hz = TOP_CPU_HZ;
	return 0;
}

/* Falls back to heaps if the CPUs cannot be sampled and cpu was not requested. */
static int top_choose(struct top_request *q, struct top_feed *feed, struct err *err)
{
	struct top_status status;
	int r;

	if (q->view.kind != TOP_CPU || top_feed_samples(feed))
		return 0;
	if (!q->has_type) {
		q->view.kind = TOP_ALLOC;
		return 0;
	}
	r = top_feed_status(feed, &status, err);
	return r < 0 ? r : err_pass(err, -ENOTSUP, &status.no_samples);
}

/* Checks that all given pids exist, and that at least one can be profiled. */
static int top_check(const struct top_request *q, struct top_feed *feed, int signals,
		     struct err *err)
{
	struct top_status status;
	int r;

	if (!q->feed.n_ids || q->view.kind == TOP_CPU)
		return 0;
	r = top_wait_first(feed, TOP_LIVE, signals, &status, err);
	if (r < 0 || status.profiled || !status.looked)
		return r;
	return err_lack(err, -ENOTSUP,
			status.n_refused ? status.refused[0].cause : ERR_CAUSE_NOT_GO, "",
			"%s cannot be profiled: %s",
			q->feed.n_ids == 1 ? "this process" : "these processes",
			status.n_refused ? status.refused[0].reason : "not a Go program");
}

static int top_show(const struct top_request *q, struct top_feed *feed, int signals,
		    struct err *err)
{
	const struct top_batch batch = {
		.view = q->view, .json = q->json, .max_rows = q->max_rows, .count = q->count};
	_cleanup_(top_ui_release) struct top_ui ui = {
		.kind = q->view.kind,
		.unit = q->view.unit,
		.group = q->view.group,
		.by_total = q->view.by_total,
		.interval_ns = q->feed.interval_ns,
		.max_rows = q->max_rows,
		.colour = term_wants_colour(STDOUT_FILENO),
	};
	int r = top_check(q, feed, signals, err);

	if (r < 0)
		return r;
	return q->batch ? top_batch_run(feed, &batch, signals, err)
			: top_live_run(feed, &ui, signals, err);
}

static int top_start(const struct top_request *q, int signals, struct top_feed **ret_feed,
		     struct err *err)
{
	struct top_guard *guard = NULL;
	int r = top_guard_new(signals, &guard, err);

	if (r == 0)
		r = top_feed_start(&q->feed, ret_feed, err);
	top_guard_dismiss(guard);
	return r;
}

static int top_run(const struct cli_args *args)
{
	struct top_request q = {};
	_cleanup_close_ int signals = -1;
	struct top_feed *feed = NULL;
	struct err err = {};
	int r = top_parse(args, &q, &err);

	if (r < 0)
		return cli_fail_usage("top", &err);
	for (size_t i = 0; i < q.feed.n_ids && r == 0; i++)
		r = proc_id_of(q.ids[i].pid, &q.ids[i], &err);
	if (r == 0)
		r = cli_begin_many(false, &err);
	if (r < 0)
		return cli_fail(r, &err);
	signals = top_signals_open(&err);
	if (signals < 0)
		return cli_fail(signals, &err);
	r = top_start(&q, signals, &feed, &err);
	if (r == 0)
		r = top_choose(&q, feed, &err);
	if (r == 0)
		r = top_show(&q, feed, signals, &err);
	/* No message: the user stopped it. */
	r = r < 0 && r != -EINTR ? cli_fail(r, &err) : CLI_OK;
	/* Stopped in order, the feed would finish what it is reading, which nobody will see. */
	if (feed)
		_exit(r);
	return r;
}

const struct cli_command cmd_top = {
	.name = "top",
	.summary = "Show live which functions use the most CPU or memory",
	.operands = "[PID...]",
	.max_operands = CLI_MAX_OPERANDS,
	.options = top_options,
	.n_options = ARRAY_SIZE(top_options),
	.notes = "CPU time covers every process and is shown in cores. It needs root, or CAP_BPF,\n"
		 "CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH. The other types cover the\n"
		 "heaps of Go processes.\n"
		 "\n"
		 "Keys: c cpu, a allocated, l live, o objects, s sort, g group, / filter, Enter\n"
		 "callers, Esc back, p pause, + - interval, ? help, q quit.\n"
		 "\n"
		 "sonde top collects by itself; `sonde run` need not be running.\n",
	.run = top_run,
};
