/*
 * src/proc/cmdline.h: what a process runs, as its command line tells.
 *
 * All Python programs are python3.11, all JVMs java: what matters is what the interpreter was told
 * to run. A command line is the process's own word, and may be rewritten at any time.
 *
 * A view of a command line is the text of /proc/PID/cmdline: arguments that end in a NUL each; the
 * last may lack it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/view.h"

/* More of a command line is not read. */
#define PROC_CMDLINE_MAX ((size_t)128 << 10)

struct proc_cmdline {
	enum {
		PROC_CMDLINE_FILE,   /* the path of a script or a jar */
		PROC_CMDLINE_MODULE, /* python -m NAME */
		PROC_CMDLINE_CLASS,
		PROC_CMDLINE_TITLE, /* what the process calls itself instead of its command line */
	} kind;
	struct view what;
};

/*
 * What an interpreter runs; false if the executable is none, or runs what has no name: code on its
 * command line, its standard input. exe: the path of its file, "" if unknown.
 */
bool proc_cmdline_find(struct view args, const char *exe, struct proc_cmdline *ret_found);
/* Whether its name depends on the directory in which the process runs. */
bool proc_cmdline_needs_cwd(const struct proc_cmdline *found);
/*
 * What people would call it: "worker.py", "gunicorn", "shop" of shop-1.2.jar. Names that say little
 * (app.py, index.js, com.acme.shop.Main) give way to the directory or package that they are in. cwd
 * is "" if unknown. Never "".
 */
void proc_cmdline_name(const struct proc_cmdline *found, const char *cwd, char *dst, size_t cap);

/*
 * The command line for people, cut to cap - 1 bytes. What looks like a secret is "***": values of
 * options and variables with such a name, passwords in URLs.
 */
void proc_cmdline_text(struct view args, char *dst, size_t cap);

/* The next argument; false after the last. *at is 0 at first. */
bool proc_cmdline_next(struct view args, size_t *at, struct view *ret_arg);
