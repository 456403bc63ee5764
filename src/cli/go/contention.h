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
	CONTENTION_DIFF = REPORT_N,
	CONTENTION_FORCE,
	CONTENTION_WAIT,
	CONTENTION_TARGET,
	CONTENTION_N = CONTENTION_TARGET + GO_TARGET_N,
};

#define CONTENTION_OPTIONS(force, arg_name, force_help)                                            \
	REPORT_OPTIONS("delay (default) or contentions"),                                          \
		[CONTENTION_DIFF] =                                                                \
			{.name = "diff",                                                           \
			 .arg = "DURATION",                                                        \
			 .help = "read twice, DURATION apart, and show the difference"},           \
		[CONTENTION_FORCE] = {.name = (force), .arg = (arg_name), .help = (force_help)},   \
		[CONTENTION_WAIT] = {.name = "wait",                                               \
				     .arg = "DURATION",                                            \
				     .help = "with --" force                                       \
					     ": how long to record (default 10s)"},                \
		GO_TARGET_OPTIONS(CONTENTION_TARGET)

/* What distinguishes the two commands. */
struct contention_kind {
	enum golang_contention_kind kind;
	enum type_id types[2]; /* its types, the default first */
	const char *command;
	const char *force;   /* the option, with its dashes */
	const char *go_call; /* the function a program would call */
};

/* An exit code. */
int contention_run(const struct contention_kind *kind, const struct cli_args *args);
