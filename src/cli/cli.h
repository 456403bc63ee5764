/*
 * src/cli/cli.h: shared by the commands of `sonde`: their table entry, exit codes, errors.
 *
 * One option table per command serves parsing, --help, and the test that checks the manual and the
 * completions.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILURE = 1,
	CLI_USAGE = 2,
	CLI_NOT_PROFILEABLE = 3,
};

struct cli_args; /* cli/options.h */

struct cli_option {
	const char *name; /* without the dashes */
	const char *arg;  /* name of its value; NULL for a switch */
	const char *help;
	char letter; /* 0 for none */
};

struct cli_command {
	const char *name;
	const char *summary;
	const char *operands; /* for the usage line */
	size_t min_operands;
	size_t max_operands;
	const struct cli_option *options;
	size_t n_options;
	const char *notes;			 /* after the options in --help; NULL for none */
	int (*run)(const struct cli_args *args); /* an exit code */
};

extern const struct cli_command cmd_run;
extern const struct cli_command cmd_services;
extern const struct cli_command cmd_query;
extern const struct cli_command cmd_store;
extern const struct cli_command cmd_top;
extern const struct cli_command cmd_ps;
extern const struct cli_command cmd_doctor;
extern const struct cli_command cmd_cpu;
extern const struct cli_command cmd_heap;
extern const struct cli_command cmd_goroutines;
extern const struct cli_command cmd_block;
extern const struct cli_command cmd_mutex;
extern const struct cli_command cmd_java;
extern const struct cli_command cmd_jfr;
extern const struct cli_command cmd_diff;
extern const struct cli_command cmd_show;
extern const struct cli_command cmd_version;

/* For a failure with this -errno. */
int cli_exit_code(int code);
/* Prints "sonde: message" on stderr; returns the exit code for the -errno. */
int cli_fail(int code, const struct err *err);
/* The same for a usage error: exit code 2, with a hint to the help. */
int cli_fail_usage(const char *command, const struct err *err);
/*
 * For commands that read many processes, before their first thread: raises the descriptor limit,
 * shares one heap, and starts aides, so that no process can hold up the others. can_write: some of
 * them with the right to write to processes.
 */
int cli_begin_many(bool can_write, struct err *err);
/* Prints an informational line on stderr. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
