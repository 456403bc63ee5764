/* src/cli/options.h: parses a command line by the command's option table. */
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
	const char *values[CLI_MAX_OPTIONS]; /* by index in the table; NULL if not given, "" for a
						switch */
	const char *operands[CLI_MAX_OPERANDS];
	size_t n_operands;
	bool help; /* -h or --help: ignore everything else */
};

/*
 * Accepts --name=value, --name value, -n value, -nvalue, bundled switches, and `--` before
 * operands. argv starts after the command's name. -EINVAL with a message that may suggest a
 * correction.
 */
int cli_args_parse(const struct cli_command *command, int argc, char *const *argv,
		   struct cli_args *ret_args, struct err *err);

/* The text of `sonde COMMAND --help`. */
int cli_usage(const struct cli_command *command, struct buf *out);

/* A positive whole number; -EINVAL names the option. */
int cli_parse_number(const char *name, const char *value, uint64_t max, uint64_t *ret_number,
		     struct err *err);
/* As clock_parse_duration, but positive; -EINVAL names the option. */
int cli_parse_duration(const char *name, const char *value, uint64_t *ret_ns, struct err *err);

/* The candidates closest to what was typed, best first. Names are borrowed. */
#define CLI_MAX_SUGGESTIONS 4
struct cli_suggestions {
	const char *names[CLI_MAX_SUGGESTIONS];
	size_t distances[CLI_MAX_SUGGESTIONS];
	size_t len; /* 0 if none is close */
};
/* Candidates that are equal and follow one another count once. */
void cli_suggestions_offer(struct cli_suggestions *s, const char *typed, const char *candidate);
/* "'a', 'b' or 'c'". Returns dst. */
const char *cli_suggestions_text(const struct cli_suggestions *s, char *dst, size_t len);
