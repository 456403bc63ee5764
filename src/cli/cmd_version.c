/* src/cli/cmd_version.c: `sonde version`. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"

static int version_run(const struct cli_args *args)
{
	(void)args;
	return printf("sonde %s\n", SONDE_VERSION) < 0 ? CLI_FAILURE : CLI_OK;
}

const struct cli_command cmd_version = {
	.name = "version",
	.summary = "Print the version of sonde",
	.operands = "",
	.run = version_run,
};
