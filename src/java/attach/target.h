/*
 * src/java/attach/target.h: a process as it sees itself: its pid in its own namespace, its user,
 * its /tmp.
 *
 * A JVM is reached through files in its own /tmp, controlled by the target and anyone who can write
 * there. That directory is opened once, inside the target's root and with its rights
 * (proc/aide/rights.h), and everything in it is accessed through the descriptor, without following
 * links. Files there are created with its rights, too.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/id.h"
#include "proc/status.h"

struct java_target {
	struct proc_id id;
	struct proc_status status;
};

/* -ESRCH if the process has exited, or its pid was reused. */
int java_target_read(const struct proc_id *id, struct java_target *ret_target, struct err *err);

/* -EAGAIN if it is stopped, and so cannot answer. */
int java_target_check_stopped(const struct java_target *target, struct err *err);

/* The /tmp inside its root, as an O_PATH descriptor. */
int java_target_open_tmp(const struct java_target *target, int *ret_fd, struct err *err);
/*
 * A directory in its file system, as an O_PATH descriptor; follows links inside its root. With our
 * rights: only to remove what has a name that nobody can guess.
 */
int java_target_open_path(pid_t pid, const char *path, int *ret_fd);

/*
 * The process's arguments or its environment, each NUL-terminated. Only the first 128 KB; empty if
 * unreadable.
 */
struct buf;
void java_target_read_words(pid_t pid, const char *file, struct buf *words);
/* Whether one of them contains the text. */
bool java_target_has_word(const struct buf *words, const char *text);
