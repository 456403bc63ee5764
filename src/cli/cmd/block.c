/* src/cli/cmd/block.c: `sonde block`: where goroutines of a Go process block, and for how long. */
#include "base/cleanup.h"
#include "cli/go/contention.h"

static const struct cli_option block_options[CONTENTION_N] = {
	CONTENTION_OPTIONS("force-block", "RATE",
			   "temporarily record one event per RATE ns blocked; 1 records all"),
};

static int block_run(const struct cli_args *args)
{
	static const struct contention_kind kind = {
		.kind = GOLANG_BLOCK,
		.types = {TYPE_GO_BLOCK_DELAY, TYPE_GO_BLOCK_CONTENTIONS},
		.command = "block",
		.force = "--force-block",
		.go_call = "runtime.SetBlockProfileRate",
	};

	return contention_run(&kind, args);
}

const struct cli_command cmd_block = {
	.name = "block",
	.summary = "Show where goroutines of a Go process block on channels and locks",
	.operands = "PID | --core FILE",
	.max_operands = 1,
	.options = block_options,
	.n_options = ARRAY_SIZE(block_options),
	.notes = "Examples:\n"
		 "  sonde block 1234                         longest waits, by function\n"
		 "  sonde block 1234 --diff 30s -f tree      waits over 30 s, as a call tree\n"
		 "  sonde block 1234 --force-block 10000     if the program does not record them\n",
	.run = block_run,
};
