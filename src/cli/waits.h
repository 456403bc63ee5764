/*
 * src/cli/waits.h: what `sonde block` and `sonde mutex` have in common: all but their names.
 *
 * One reading; or with --diff two, and what lies between them. The force option lets a program
 * record for a while that does not do so by itself, and sets the old rate back.
 */
#pragma once

#include "cli/go_target.h"
#include "cli/options.h"
#include "cli/report.h"
#include "golang/contention.h"

enum {
	WAITS_DIFF = REPORT_N,
	WAITS_FORCE,
	WAITS_WAIT,
	WAITS_TARGET,
	WAITS_N = WAITS_TARGET + GO_TARGET_N,
};

#define WAITS_OPTIONS(force, arg_name, force_help)                                                 \
	REPORT_OPTIONS("delay (default) or contentions"),                                          \
		[WAITS_DIFF] = {.name = "diff",                                                    \
				.arg = "DURATION",                                                 \
				.help = "read twice, so far apart, and show what lies between"},   \
		[WAITS_FORCE] = {.name = (force), .arg = (arg_name), .help = (force_help)},        \
		[WAITS_WAIT] = {.name = "wait",                                                    \
				.arg = "DURATION",                                                 \
				.help = "with --" force ": how long to record (default 10s)"},     \
		GO_TARGET_OPTIONS(WAITS_TARGET)

/* Which of the two commands it is. */
struct waits_kind {
	enum golang_contention_kind kind;
	enum type_id types[2]; /* what it is shown by, the default first */
	const char *command;
	const char *force;   /* the option, with its dashes */
	const char *go_call; /* what a program itself would call */
};

/* An exit code. */
int waits_run(const struct waits_kind *kind, const struct cli_args *args);
