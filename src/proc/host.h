/*
 * src/proc/host.h: our permissions on this machine, and what it hides or denies.
 *
 * Whether something works is found by trying it. These functions explain a failure: each error has
 * a remedy and a cause (base/err.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* In effect for this process. */
bool proc_host_has_cap(unsigned int cap);
/* Whoever's they are. */
bool proc_host_reads_all_files(void);
/* Whether /proc is mounted so that users do not see the processes of others (hidepid). */
bool proc_host_hides_processes(void);
/* The same, from the text of /proc/self/mountinfo. */
bool proc_host_parse_hidepid(const char *mountinfo);
/* Whether we are in the initial PID namespace. */
bool proc_host_has_own_pids(void);
/* kernel.yama.ptrace_scope; 0 if there is none. */
int proc_host_ptrace_scope(void);
/* A seccomp filter may hide or deny system calls. */
bool proc_host_is_filtered(void);
/* Root inside it has no privileges outside. */
bool proc_host_is_user_namespace(void);

/* Whether something is mounted on path, or above it but below base; the mount point goes to ret. */
bool proc_host_is_covered(const char *path, const char *base, char *ret, size_t cap);
/* The same, from the text of /proc/self/mountinfo. */
bool proc_host_parse_cover(char *mountinfo, const char *path, const char *base, char *ret,
			   size_t cap);

/* Whether we can read other processes' memory. -EPERM if not; *ret_own: our own user's at least. */
int proc_host_check_memory(bool *ret_own, struct err *err);
/* Whether /proc is mounted. */
int proc_host_check_proc(struct err *err);
/* Whether we see the host's process ids. */
int proc_host_check_pids(struct err *err);
