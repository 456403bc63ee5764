/* src/cli/cmd/query.c: `sonde query`: a stored window of a service, or the difference of two. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cmd/query_type.h"
#include "cli/data_dir.h"
#include "cli/render/report.h"
#include "cli/render/units.h"
#include "cli/term.h"
#include "profile/ops.h"
#include "query/query.h"

#define QUERY_MAX_LABELS 16

enum { QUERY_DATA_DIR = REPORT_N, QUERY_FROM, QUERY_TO, QUERY_BASELINE, QUERY_LABEL, QUERY_N };

static const struct cli_option query_options[QUERY_N] = {
	REPORT_OPTIONS("what to show: cpu, heap, alloc, mutex ... (default: heap, or cpu)"),
	[QUERY_DATA_DIR] = {.name = "data-dir", .arg = "DIR", .help = DATA_DIR_HELP},
	[QUERY_FROM] = {.name = "from",
			.arg = "TIME",
			.help = "start of the window (default: one hour before --to)"},
	[QUERY_TO] = {.name = "to", .arg = "TIME", .help = "end of the window (default: now)"},
	[QUERY_BASELINE] = {.name = "baseline",
			    .arg = "WINDOW",
			    .help = "subtract this window: FROM..TO, or previous"},
	[QUERY_LABEL] = {.name = "label",
			 .arg = "KEY=VALUE",
			 .help = "only processes with this label; separate several by commas"},
};

struct query {
	struct store *store;
	struct store_window window;
	struct store_window before;
	bool has_before;
	char type[sizeof(((struct store_stream *)0)->type)];
	char *label_text; /* storage of the labels */
	struct label labels[QUERY_MAX_LABELS];
};

static void query_release(struct query *q)
{
	store_close(q->store);
	free(q->label_text);
}

static int query_parse_labels(const char *text, struct query *q, struct err *err)
{
	char *rest, *pair;

	q->label_text = strdup(text);
	if (!q->label_text)
		return err_oom(err);
	rest = q->label_text;
	while ((pair = strsep(&rest, ","))) {
		char *equals = strchr(pair, '=');

		if (!equals || equals == pair)
			return err_set(err, -EINVAL,
				       "--label must be KEY=VALUE, for example process.pid=1234");
		if (q->window.n_filters == QUERY_MAX_LABELS)
			return err_set(err, -EINVAL, "--label takes at most %d labels",
				       QUERY_MAX_LABELS);
		*equals = '\0';
		q->labels[q->window.n_filters++] = (struct label){.key = pair, .value = equals + 1};
	}
	q->window.filters = q->labels;
	return 0;
}

static int query_parse_baseline(const char *text, struct query *q, struct err *err)
{
	const char *dots = strstr(text, "..");
	_cleanup_free_ char *from = NULL;
	int r;

	q->before = q->window;
	q->has_before = true;
	if (strcmp(text, "previous") == 0) {
		q->before.to_ns = q->window.from_ns;
		q->before.from_ns =
			MAX(q->window.from_ns - (q->window.to_ns - q->window.from_ns), 0);
		return 0;
	}
	if (!dots || dots == text || !dots[2])
		return err_set(err, -EINVAL,
			       "--baseline must be FROM..TO, for example -2h..-1h, or previous");
	from = strndup(text, (size_t)(dots - text));
	if (!from)
		return err_oom(err);
	r = data_dir_window(from, dots + 2, &q->before, err);
	return r < 0 ? err_prefix(err, r, "--baseline") : 0;
}

static int query_parse(const struct cli_args *args, struct query *q, struct err *err)
{
	int r = data_dir_window(args->values[QUERY_FROM], args->values[QUERY_TO], &q->window, err);

	q->window.service = args->operands[0];
	if (r == 0 && args->values[QUERY_LABEL])
		r = query_parse_labels(args->values[QUERY_LABEL], q, err);
	if (r == 0 && args->values[QUERY_BASELINE])
		r = query_parse_baseline(args->values[QUERY_BASELINE], q, err);
	return r;
}

static int query_no_service(const struct query *q, const struct store_stream *streams, size_t n,
			    struct err *err)
{
	struct cli_suggestions s = {};
	char names[256];

	for (size_t i = 0; i < n; i++)
		cli_suggestions_offer(&s, q->window.service, streams[i].service);
	if (s.len)
		return err_set(err, -ENOENT, "no stored profiles of '%s'; did you mean %s?",
			       q->window.service, cli_suggestions_text(&s, names, sizeof(names)));
	return err_set(err, -ENOENT, "no stored profiles of '%s'; see `sonde services --from -7d`",
		       q->window.service);
}

/* The service's stream over all time: a window without data is empty, not an error. */
static int query_find_type(struct query *q, const char *word, struct err *err)
{
	_cleanup_free_ struct store_stream *streams = NULL;
	const struct store_stream *picked;
	size_t n = 0, first = 0, end;
	int r = store_streams(q->store, 0, INT64_MAX, &streams, &n, err);

	if (r < 0)
		return r;
	while (first < n && strcmp(streams[first].service, q->window.service) != 0)
		first++;
	for (end = first; end < n && strcmp(streams[end].service, q->window.service) == 0;)
		end++;
	if (first == end)
		return query_no_service(q, streams, n, err);
	r = word ? cmd_query_type_pick(streams + first, end - first, word, &picked, err)
		 : cmd_query_type_default(streams + first, end - first, &picked, err);
	if (r < 0)
		return err_prefix(err, r, "%s", q->window.service);
	memcpy(q->type, picked->type, sizeof(q->type));
	q->window.type = q->type;
	q->before.type = q->type;
	return 0;
}

static void query_describe(const struct query *q, const struct store_sum *about, size_t n_samples)
{
	const char *unit = strrchr(q->type, ':');
	char label[UNITS_LABEL_LEN];

	if (about->collections == 0)
		cli_note("Nothing was collected in this window.");
	else
		cli_note("%s of %s: %s over %llu collections.", q->type, q->window.service,
			 about->snapshot ? "average" : "sum",
			 (unsigned long long)about->collections);
	/* Collections are counted per service; labels only filter processes. */
	if (about->collections && q->window.n_filters && !n_samples)
		cli_note("None of it comes from a process with this --label.");
	if (about->other)
		cli_note("%s is stored as \"(other)\": it had too many distinct stacks.",
			 units_label(label, about->other, unit ? unit + 1 : "", "auto"));
}

static int query_write(struct query *q, struct report *report, struct err *err)
{
	_cleanup_(profile_freep) struct profile *after = NULL;
	_cleanup_(profile_freep) struct profile *before = NULL;
	_cleanup_(profile_freep) struct profile *change = NULL;
	struct store_sum about = {0}, about_before = {0};
	int r;

	term_status("reading the store");
	r = query_profile(q->store, &q->window, &after, &about, err);
	if (r == 0 && q->has_before)
		r = query_profile(q->store, &q->before, &before, &about_before, err);
	term_status(NULL);
	if (r < 0)
		return r;
	query_describe(q, &about, profile_n_samples(after));
	if (q->has_before && about_before.collections == 0)
		cli_note("Nothing was collected in the baseline: everything appears new.");
	report->type = NULL;
	if (!q->has_before)
		return report_write(report, after, err);
	r = profile_diff(before, after, &change, err);
	if (r < 0)
		return r;
	report->before = before;
	report->after = after;
	return report_write(report, change, err);
}

static int query_run(const struct cli_args *args)
{
	_cleanup_(query_release) struct query q = {0};
	struct report report;
	struct err err = {};
	int r = report_parse(args, &report, &err);

	if (r == 0)
		r = query_parse(args, &q, &err);
	if (r < 0)
		return cli_fail_usage("query", &err);
	r = report_check_output(&report, &err);
	if (r == 0)
		r = data_dir_open(args->values[QUERY_DATA_DIR], &q.store, &err);
	if (r == 0)
		r = query_find_type(&q, report.type, &err);
	if (r == 0)
		r = query_write(&q, &report, &err);
	if (q.store)
		data_dir_tell_damage(q.store);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_query = {
	.name = "query",
	.summary = "Show a stored profile of a service, or compare two time windows",
	.operands = "SERVICE",
	.min_operands = 1,
	.max_operands = 1,
	.options = query_options,
	.n_options = ARRAY_SIZE(query_options),
	.notes = "TYPE is a type of the service, as listed by `sonde services`, or a word that "
		 "means\n"
		 "only one of them: cpu, offcpu, heap, alloc, goroutines, block, mutex, lock.\n"
		 "\n"
		 "TIME is now, -1h, 12:03, 2026-11-15T12:03:00Z, or milliseconds since 1970.\n"
		 "In-use values are averaged over the window; all others are summed.\n"
		 "\n"
		 "Examples:\n"
		 "  sonde query api                          memory in use, or CPU time\n"
		 "  sonde query api -t cpu --from -10m       CPU time of the last ten minutes\n"
		 "  sonde query api -t mutex --from -1d      a day of lock contention\n"
		 "  sonde query api -t alloc --baseline previous\n"
		 "                                           what changed since the hour before\n",
	.run = query_run,
};
