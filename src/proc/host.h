/*
 * src/proc/host.h: our rights on this machine, and what it hides or forbids.
 *
 * Whether something works is found by trying it. These tell why it did not, and what would help:
 * each error has its remedy and its cause (base/err.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* In effect for this process. */
bool proc_host_has_cap(unsigned int cap);
/* Whether the ids that we see are those of the kernel itself. */
bool proc_host_has_own_pids(void);
/* kernel.yama.ptrace_scope; 0 where there is none. */
int proc_host_ptrace_scope(void);
/* A seccomp filter may hide or forbid system calls. */
bool proc_host_is_filtered(void);
/* Root in there is nobody outside. */
bool proc_host_is_user_namespace(void);

/* Something is mounted on path itself, or above it but below base; its place goes to ret. */
bool proc_host_is_covered(const char *path, const char *base, char *ret, size_t cap);
/* The same, from the text of /proc/self/mountinfo. */
bool proc_host_parse_cover(char *mountinfo, const char *path, const char *base, char *ret,
			   size_t cap);

/* Whether the memory of others can be read. -EPERM; *ret_own: that of our own programs can. */
int proc_host_check_memory(bool *ret_own, struct err *err);
/* Whether /proc is there at all. */
int proc_host_check_proc(struct err *err);
/* Whether process ids are the host's. */
int proc_host_check_pids(struct err *err);
