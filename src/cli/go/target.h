/*
 * src/cli/go/target.h: the Go process or core file that a command reads, and the options that
 * select it, shared by all these commands.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "cli/options.h"
#include "golang/process.h"
#include "proc/info.h"

/* Goes at the end of a command's options, starting at an index it chooses. */
enum {
	GO_TARGET_CORE,
	GO_TARGET_EXE,
	GO_TARGET_ASSUME_LAYOUT,
	GO_TARGET_IGNORE_SYMBOLS,
	GO_TARGET_N,
};

/* clang-format off */
#define GO_TARGET_OPTIONS(first)                                                                   \
	[(first) + GO_TARGET_CORE] = {.name = "core",                                              \
				      .arg = "FILE",                                               \
				      .help = "read a core file instead of a process"},            \
	[(first) + GO_TARGET_EXE] = {.name = "exe",                                                \
				     .arg = "FILE",                                                \
				     .help = "with --core: the executable, if it has moved"},      \
	[(first) + GO_TARGET_ASSUME_LAYOUT] = {.name = "assume-layout",                            \
					       .arg = "VERSION",                                   \
					       .help = "treat an unknown Go version as this one, " \
						       "such as 1.27"},                            \
	[(first) + GO_TARGET_IGNORE_SYMBOLS] = {.name = "ignore-symbols",                          \
						.help = "treat the binary as stripped"}
/* clang-format on */

struct go_target {
	const char *core; /* NULL for a live process; borrowed */
	pid_t pid;	  /* of a live process */
	struct golang_options options;
	struct proc_info info; /* of a live process, once it is open */
	struct golang_process *process;
};

/* -EINVAL with a message; command: as typed. */
int go_target_parse(const char *command, const struct cli_args *args, size_t first,
		    struct go_target *ret_target, struct err *err);
/* -ENOTSUP if it is not a Go program, or cannot be read. */
int go_target_open(struct go_target *target, struct err *err);
void go_target_release(struct go_target *target);

/* "NAME (pid N)", or the core file. */
#define GO_TARGET_NAME_LEN 600
const char *go_target_name(const struct go_target *target, char dst[static GO_TARGET_NAME_LEN]);

/* Reports losses while reading the runtime's lists of stacks. */
void go_target_report_losses(uint64_t bad_buckets, bool incomplete, uint64_t unknown_frames);
