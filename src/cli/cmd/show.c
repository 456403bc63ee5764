/* src/cli/cmd/show.c: `sonde show`: shows a pprof file of any origin. */
#include <errno.h>

#include "base/cleanup.h"
#include "cli/render/report.h"

static const struct cli_option show_options[] = {
	REPORT_OPTIONS("sample type (default: the file's default, or its last)"),
};

static int show_run(const struct cli_args *args)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct report report;
	struct err err = {};
	size_t type;
	int r;

	r = report_parse(args, &report, &err);
	if (r < 0)
		return cli_fail_usage("show", &err);
	r = report_load(args->operands[0], &p, &err);
	if (r < 0)
		return cli_fail(r, &err);
	r = report_find_type(p, report.type, &type, &err);
	if (r == -EINVAL)
		return cli_fail_usage("show", &err);
	if (r == 0 && profile_n_samples(p) == 0)
		cli_note("The profile is empty: it has no samples.");
	if (r == 0)
		r = report_write(&report, p, &err);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_show = {
	.name = "show",
	.summary = "Show a pprof file of any kind",
	.operands = "FILE",
	.min_operands = 1,
	.max_operands = 1,
	.options = show_options,
	.n_options = ARRAY_SIZE(show_options),
	.notes = "FILE is in pprof format, gzipped or not; - is standard input.\n",
	.run = show_run,
};
