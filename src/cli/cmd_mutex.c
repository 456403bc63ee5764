/* src/cli/cmd_mutex.c: `sonde mutex`: who holds the locks of a Go program that others wait for. */
#include "base/cleanup.h"
#include "cli/waits.h"

static const struct cli_option mutex_options[WAITS_N] = {
	WAITS_OPTIONS("force-mutex", "FRACTION",
		      "record one event of so many for a while; 1 is all"),
};

static int mutex_run(const struct cli_args *args)
{
	static const struct waits_kind kind = {
		.kind = GOLANG_MUTEX,
		.types = {TYPE_GO_MUTEX_DELAY, TYPE_GO_MUTEX_CONTENTIONS},
		.command = "mutex",
		.force = "--force-mutex",
		.go_call = "runtime.SetMutexProfileFraction",
	};

	return waits_run(&kind, args);
}

const struct cli_command cmd_mutex = {
	.name = "mutex",
	.summary = "Show who holds the locks of a Go program that others wait for",
	.operands = "PID | --core FILE",
	.max_operands = 1,
	.options = mutex_options,
	.n_options = ARRAY_SIZE(mutex_options),
	.notes = "Durations are written like 500ms, 30s, 5m.\n"
		 "\n"
		 "Examples:\n"
		 "  sonde mutex 1234                         the longest waits, by who let go\n"
		 "  sonde mutex 1234 --diff 30s -f tree      those of half a minute, by call path\n"
		 "  sonde mutex 1234 --force-mutex 10        where the program does not record "
		 "them\n",
	.run = mutex_run,
};
