/* src/cli/options.h: turns a command line into values, by the command's own table of options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"

#define CLI_MAX_OPTIONS 24
#define CLI_MAX_OPERANDS 64

/* Everything is borrowed from argv. */
struct cli_args {
	const char *values[CLI_MAX_OPTIONS]; /* by index in the table; NULL when not given, "" for a
						switch */
	const char *operands[CLI_MAX_OPERANDS];
	size_t n_operands;
	bool help; /* -h or --help: nothing else counts */
};

/*
 * Accepts --name=value, --name value, -n value, -nvalue, bundled switches, and `--` before
 * operands. argv starts after the command's name. -EINVAL with the sentence, which proposes what
 * may have been meant.
 */
int cli_args_parse(const struct cli_command *command, int argc, char *const *argv,
		   struct cli_args *ret_args, struct err *err);

/* The text of `sonde COMMAND --help`. */
int cli_usage(const struct cli_command *command, struct buf *out);

/* Whole and positive; -EINVAL names the option. */
int cli_parse_number(const char *name, const char *value, uint64_t max, uint64_t *ret_number,
		     struct err *err);
/* As clock_parse_duration, more than nothing; -EINVAL names the option. */
int cli_parse_duration(const char *name, const char *value, uint64_t *ret_ns, struct err *err);

/* Keeps the nearest of the candidates to what was typed; best is NULL when none is near. */
struct cli_suggestion {
	const char *best;
	size_t distance;
};
void cli_suggestion_offer(struct cli_suggestion *s, const char *typed, const char *candidate);
