/*
 * src/cli/waits.h: what `sonde block` and `sonde mutex` have in common: all but their names.
 *
 * One reading; or with --diff two, and what lies between them. The force option lets a program
 * record for a while that does not do so by itself, and sets the old rate back.
 */
#pragma once

#include "cli/options.h"
#include "cli/report.h"
#include "golang/contention.h"

enum {
	WAITS_DIFF = REPORT_N,
	WAITS_FORCE,
	WAITS_WAIT,
	WAITS_CORE,
	WAITS_EXE,
	WAITS_ASSUME_LAYOUT,
	WAITS_IGNORE_SYMBOLS,
	WAITS_N,
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
		[WAITS_CORE] = {.name = "core",                                                    \
				.arg = "FILE",                                                     \
				.help = "read a core file, not a process"},                        \
		[WAITS_EXE] = {.name = "exe",                                                      \
			       .arg = "FILE",                                                      \
			       .help = "with --core: the executable, where it has moved"},         \
		[WAITS_ASSUME_LAYOUT] =                                                            \
			{.name = "assume-layout",                                                  \
			 .arg = "VERSION",                                                         \
			 .help = "treat an unknown Go version as this one, such as 1.27"},         \
		[WAITS_IGNORE_SYMBOLS] = {                                                         \
			.name = "ignore-symbols",                                                  \
			.help = "find everything as if the binary were stripped"}

/* Which of the two commands it is. */
struct waits_kind {
	enum golang_contention_kind kind;
	const char *command;
	const char *force;   /* the option, with its dashes */
	const char *go_call; /* what a program itself would call */
};

/* An exit code. */
int waits_run(const struct waits_kind *kind, const struct cli_args *args);
