/* src/cli/cmd/diff.c: `sonde diff`: compares two pprof files. */
#include <errno.h>

#include "base/cleanup.h"
#include "cli/render/report.h"
#include "profile/ops.h"

static const struct cli_option diff_options[] = {
	REPORT_OPTIONS("sample type (default: the second file's default)"),
};

static int diff_run(const struct cli_args *args)
{
	_cleanup_(profile_freep) struct profile *before = NULL;
	_cleanup_(profile_freep) struct profile *after = NULL;
	_cleanup_(profile_freep) struct profile *change = NULL;
	struct report report;
	struct err err = {};
	size_t type;
	int r;

	r = report_parse(args, &report, &err);
	if (r < 0)
		return cli_fail_usage("diff", &err);
	r = report_load(args->operands[0], &before, &err);
	if (r == 0)
		r = report_load(args->operands[1], &after, &err);
	if (r < 0)
		return cli_fail(r, &err);
	r = report_find_type(after, report.type, &type, &err);
	if (r == -EINVAL)
		return cli_fail_usage("diff", &err);
	if (r == 0)
		r = profile_diff(before, after, &change, &err);
	if (r < 0)
		return cli_fail(r, &err);
	report.type = profile_cstring(after, profile_type_at(after, type)->type);
	report.before = before;
	report.after = after;
	if (profile_n_samples(change) == 0)
		cli_note("No difference: both profiles have the same values.");
	r = report_write(&report, change, &err);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_diff = {
	.name = "diff",
	.summary = "Compare two pprof files",
	.operands = "BEFORE AFTER",
	.min_operands = 2,
	.max_operands = 2,
	.options = diff_options,
	.n_options = ARRAY_SIZE(diff_options),
	.notes = "Values are AFTER minus BEFORE. `-f top` shows each function's value before and\n"
		 "after, the change, and its share of the total change.\n",
	.run = diff_run,
};
