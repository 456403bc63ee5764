/*
 * src/cli/render/report.h: shared by commands that report a profile: the options -t, -f, -o,
 * --nodes and --all-nodes, and writing the result.
 */
#pragma once

#include "base/err.h"
#include "cli/options.h"
#include "cli/render/render.h"
#include "pipeline/registry/registry.h"

/* Such a command starts its option table with REPORT_OPTIONS, and its own indexes at REPORT_N. */
enum {
	REPORT_TYPE,
	REPORT_FORMAT,
	REPORT_OUTPUT,
	REPORT_NODES,
	REPORT_ALL_NODES,
	REPORT_N,
};

#define REPORT_NODES_HELP "show at most N functions, 0: all (default: what fits the terminal)"

#define REPORT_OPTIONS(types)                                                                      \
	[REPORT_TYPE] = {.letter = 't', .name = "type", .arg = "TYPE", .help = types},             \
	[REPORT_FORMAT] = {.letter = 'f',                                                          \
			   .name = "format",                                                       \
			   .arg = "FORMAT",                                                        \
			   .help = "top (default), tree, collapsed, pprof or json"},               \
	[REPORT_OUTPUT] = {.letter = 'o',                                                          \
			   .name = "output",                                                       \
			   .arg = "FILE",                                                          \
			   .help = "output file; - is standard output"},                           \
	[REPORT_NODES] = {.letter = 'n', .name = "nodes", .arg = "N", .help = REPORT_NODES_HELP},  \
	[REPORT_ALL_NODES] = {.letter = 'a',                                                       \
			      .name = "all-nodes",                                                 \
			      .help = "include nodes below 0.5% of the total"}

struct report_format;

struct report {
	const char *type; /* NULL: the profile's default */
	const struct report_format *format;
	const char *path;   /* NULL: standard output */
	uint64_t max_nodes; /* 0: no limit */
	bool all_nodes;
	size_t columns; /* of the terminal it goes to; 0: it goes elsewhere */
	size_t lines;	/* likewise, unless a number of nodes is given */
	/* Set by the command. */
	const struct render_source *source;
	struct profile *before; /* set together: top compares them */
	struct profile *after;
};

/* -EINVAL for a usage error, also for pprof on a terminal. */
int report_parse(const struct cli_args *args, struct report *ret_report, struct err *err);
/* -EINVAL if it is not the name of one of these; the message lists them. NULL is fine. */
int report_check_type(const char *type, const enum type_id *ids, size_t n, struct err *err);
/* -EINVAL if the profile has no such type; the message lists its types. */
int report_find_type(const struct profile *p, const char *type, size_t *ret_type, struct err *err);
/* Whether the output is writable: worth knowing before a long wait. */
int report_check_output(const struct report *report, struct err *err);
/* Renders and writes. */
int report_write(const struct report *report, struct profile *p, struct err *err);
/* Prints text to standard output, for any command. */
int report_print(const struct buf *text, struct err *err);
/* Reads a pprof file. */
int report_load(const char *path, struct profile **ret_profile, struct err *err);
