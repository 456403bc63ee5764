/*
 * src/cli/main.c: the commands of sonde.
 *
 * Start reading here: the table lists all commands, and each one is a cmd_*.c file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/render/report.h"

static const struct cli_command *const commands[] = {
	&cmd_run,    &cmd_top, &cmd_services, &cmd_query,      &cmd_store,   &cmd_ps,
	&cmd_doctor, &cmd_cpu, &cmd_heap,     &cmd_goroutines, &cmd_block,   &cmd_mutex,
	&cmd_java,   &cmd_jfr, &cmd_diff,     &cmd_show,       &cmd_version,
};

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static int unknown_command(const char *name)
{
	struct cli_suggestions s = {};
	char names[128];
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		cli_suggestions_offer(&s, name, commands[i]->name);
	cli_suggestions_offer(&s, name, "help");
	if (s.len)
		(void)err_set(&err, 0, "unknown command '%s'; did you mean %s?", name,
			      cli_suggestions_text(&s, names, sizeof(names)));
	else
		(void)err_set(&err, 0, "unknown command '%s'", name);
	return cli_fail_usage(NULL, &err);
}

static int print_overview(FILE *to)
{
	(void)fputs("sonde profiles every process on a Linux machine, unmodified. It never stops,\n"
		    "signals or changes a process unless you ask for it (--force, java, --java).\n"
		    "\n"
		    "Usage: sonde [COMMAND [OPTIONS] [ARGUMENTS]]\n"
		    "\n"
		    "Commands:\n",
		    to);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		(void)fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	(void)fputs(
		"  help       Show this help, or help for a command: sonde help cpu\n"
		"\n"
		"Exit codes: 0 success, 1 failure, 2 usage error, 3 cannot be profiled (doctor:\n"
		"not everything works on this machine).\n",
		to);
	if (fflush(to) == 0)
		return CLI_OK;
	return cli_fail(-errno, &(struct err){});
}

static int print_help(const struct cli_command *command)
{
	_cleanup_(buf_release) struct buf text = {};
	struct err err = {};
	int r = cli_usage(command, &text);

	if (r == 0)
		r = report_print(&text, &err);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

static int help(int argc, char **argv)
{
	const struct cli_command *command;

	if (argc == 0 || strcmp(argv[0], "help") == 0 || argv[0][0] == '-')
		return print_overview(stdout);
	if (argc > 1)
		return cli_fail_usage(NULL,
				      &(struct err){.text = "help takes one command at most"});
	command = find_command(argv[0]);
	return command ? print_help(command) : unknown_command(argv[0]);
}

int main(int argc, char **argv)
{
	const struct cli_command *command;
	struct cli_args args;
	struct err err = {};
	/* The default is `sonde run`. */
	const char *name = argc > 1 ? argv[1] : cmd_run.name;

	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return help(argc - 2, argv + 2);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	command = find_command(name);
	if (!command)
		return unknown_command(name);
	if (cli_args_parse(command, argc > 2 ? argc - 2 : 0, argv + 2, &args, &err) < 0)
		return cli_fail_usage(command->name, &err);
	return args.help ? print_help(command) : command->run(&args);
}
