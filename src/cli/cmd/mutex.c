/* src/cli/cmd/mutex.c: `sonde mutex`: who holds the contended locks of a Go process. */
#include "base/cleanup.h"
#include "cli/go/contention.h"

static const struct cli_option mutex_options[CONTENTION_N] = {
	CONTENTION_OPTIONS("force-mutex", "FRACTION",
			   "temporarily record one in FRACTION events; 1 records all"),
};

static int mutex_run(const struct cli_args *args)
{
	static const struct contention_kind kind = {
		.kind = GOLANG_MUTEX,
		.types = {TYPE_GO_MUTEX_DELAY, TYPE_GO_MUTEX_CONTENTIONS},
		.command = "mutex",
		.force = "--force-mutex",
		.go_call = "runtime.SetMutexProfileFraction",
	};

	return contention_run(&kind, args);
}

const struct cli_command cmd_mutex = {
	.name = "mutex",
	.summary = "Show who holds the contended locks of a Go process",
	.operands = "PID | --core FILE",
	.max_operands = 1,
	.options = mutex_options,
	.n_options = ARRAY_SIZE(mutex_options),
	.notes = "Examples:\n"
		 "  sonde mutex 1234                         longest waits, by unlocking function\n"
		 "  sonde mutex 1234 --diff 30s -f tree      waits over 30 s, as a call tree\n"
		 "  sonde mutex 1234 --force-mutex 10        if the program does not record them\n",
	.run = mutex_run,
};
