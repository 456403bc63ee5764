/*
 * src/java/attach/target.h: a process as it sees itself: its pid in its own namespace, its user,
 * its /tmp.
 *
 * A JVM is reached through files in its own /tmp, controlled by the target and anyone who can write
 * there. That directory is opened once, inside the target's root, and everything in it is accessed
 * through the descriptor, without following links.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/id.h"

struct java_target {
	struct proc_id id;
	pid_t inner_pid; /* its pid in its own namespace */
	uid_t euid;
	gid_t egid;
	uint64_t caught; /* signals with a handler: bit 0 is signal 1 */
	char state;	 /* R, S, D, T, t, Z, X */
};

/* -ESRCH if the process has exited, or its pid was reused. */
int java_target_read(const struct proc_id *id, struct java_target *ret_target, struct err *err);
/* From the text of /proc/PID/status; sets everything but id. -EBADMSG if a field is missing. */
int java_target_parse(const char *status, struct java_target *ret_target);

/* The /tmp inside its root, as an O_PATH descriptor. */
int java_target_open_tmp(const struct java_target *target, int *ret_fd, struct err *err);
/* A path in its file system, as an O_PATH descriptor; follows links inside its root. */
int java_target_open_path(pid_t pid, const char *path, uint64_t flags, int *ret_fd);

/*
 * The process's arguments or its environment, each NUL-terminated. Only the first 128 KB; empty if
 * unreadable.
 */
struct buf;
void java_target_read_words(pid_t pid, const char *file, struct buf *words);
/* Whether one of them contains the text. */
bool java_target_has_word(const struct buf *words, const char *text);
