/* src/proc/stat.h: the fields of /proc/PID/stat that tell processes apart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/view.h"

struct proc_stat {
	char comm[32]; /* control characters replaced */
	char state;    /* R, S, D, T, t, Z, X, I */
	bool kernel_thread;
	bool exiting;
	uint64_t start_ticks;
	/*
	 * Where code and stack lie, mixed into one number: an exec changes it, also one of the same
	 * program, as its stack begins elsewhere. 0 without permission.
	 */
	uint64_t image;
};

/* -ESRCH when there is no such process. */
int proc_stat_read(pid_t pid, struct proc_stat *ret_stat, struct err *err);
/* The same of a process that still has its memory: -ESRCH with a sentence for a zombie. */
int proc_stat_read_alive(pid_t pid, struct proc_stat *ret_stat, struct err *err);
/* The name may hold blanks and parentheses. -EBADMSG when a field is missing. */
int proc_stat_parse(struct view text, struct proc_stat *ret_stat);
/* A zombie, or a process on its way there, keeps its pid and has no memory any more. */
bool proc_stat_is_dead(const struct proc_stat *stat);
