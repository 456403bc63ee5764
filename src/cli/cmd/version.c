/* src/cli/cmd/version.c: `sonde version`. */
#include "base/cleanup.h"
#include "cli/render/report.h"

static int version_run(const struct cli_args *args)
{
	_cleanup_(buf_release) struct buf text = {};
	struct err err = {};
	int r;

	(void)args;
	r = buf_printf(&text, "sonde %s\n", SONDE_VERSION);
	if (r == 0)
		r = report_print(&text, &err);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_version = {
	.name = "version",
	.summary = "Print the version",
	.operands = "",
	.run = version_run,
};
