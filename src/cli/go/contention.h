/*
 * src/cli/go/contention.h: shared by `sonde block` and `sonde mutex`: everything but their names.
 *
 * Reads once; with --diff twice, and shows the difference. The force option turns recording on
 * temporarily and restores the old rate.
 */
#pragma once

#include "cli/go/target.h"
#include "cli/options.h"
#include "cli/render/report.h"
#include "golang/contention/contention.h"

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
				.help = "read twice, DURATION apart, and show the difference"},    \
		[WAITS_FORCE] = {.name = (force), .arg = (arg_name), .help = (force_help)},        \
		[WAITS_WAIT] = {.name = "wait",                                                    \
				.arg = "DURATION",                                                 \
				.help = "with --" force ": how long to record (default 10s)"},     \
		GO_TARGET_OPTIONS(WAITS_TARGET)

/* What distinguishes the two commands. */
struct waits_kind {
	enum golang_contention_kind kind;
	enum type_id types[2]; /* its types, the default first */
	const char *command;
	const char *force;   /* the option, with its dashes */
	const char *go_call; /* the function a program would call */
};

/* An exit code. */
int waits_run(const struct waits_kind *kind, const struct cli_args *args);
