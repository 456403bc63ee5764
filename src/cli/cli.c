/* src/cli/cli.c: see cli.h. */
#include "cli/cli.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/term.h"
#include "proc/aide/aides.h"

/* The agent's maximum of processes, times the descriptors it keeps open for each. */
#define CLI_WANTED_FILES 16384

/* Messages quote names of files and functions, which others choose. */
static void cli_print_line(const char *prefix, const char *text)
{
	char line[1024];

	(void)snprintf(line, sizeof(line), "%s%s", prefix, text);
	text_clean(line, strlen(line));
	term_status(NULL);
	(void)fprintf(stderr, "%s\n", line);
}

int cli_exit_code(int code)
{
	return code == -ENOTSUP ? CLI_NOT_PROFILEABLE : CLI_FAILURE;
}

int cli_fail(int code, const struct err *err)
{
	char line[ERR_LINE_MAX];

	cli_print_line("sonde: ", err_describe(err, code, line));
	return cli_exit_code(code);
}

int cli_fail_usage(const char *command, const struct err *err)
{
	char line[ERR_LINE_MAX];

	cli_print_line("sonde: ", err_describe(err, -EINVAL, line));
	if (command)
		(void)fprintf(stderr, "See `sonde help %s`.\n", command);
	else
		(void)fputs("See `sonde help`.\n", stderr);
	return CLI_USAGE;
}

void cli_note(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cli_print_line("", text);
}

int cli_begin_many(bool can_write, struct err *err)
{
	struct rlimit files;

	/* A heap per thread would never give memory back. */
	(void)mallopt(M_ARENA_MAX, 2);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < CLI_WANTED_FILES) {
		files.rlim_cur = MIN(files.rlim_max, (rlim_t)CLI_WANTED_FILES);
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	return proc_aides_start(can_write, err);
}
