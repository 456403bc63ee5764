/* src/proc/stat.h: the fields of /proc/PID/stat that tell processes apart, and their memory. */
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
	pid_t parent; /* 0: none that we can see */
	uint64_t start_ticks;
	uint64_t rss_bytes; /* resident memory; 0: none */
	/*
	 * The addresses of code and stack, mixed into one number. Every exec changes it, even of
	 * the same program: the stack starts elsewhere. 0 without permission.
	 */
	uint64_t image;
};

/*
 * -ESRCH if there is no such process, -ETIMEDOUT if it is not responding: the kernel lets nobody
 * read this while it is inside an exec, and somebody who serves a file system can keep it there.
 */
int proc_stat_read(pid_t pid, struct proc_stat *ret_stat, struct err *err);
/* The same, for a process that still has memory: -ESRCH with a message for a zombie. */
int proc_stat_read_alive(pid_t pid, struct proc_stat *ret_stat, struct err *err);

/* The same of many; an aide reads them in one go. */
struct proc_stat_reading {
	int code; /* 0 or -errno, as above */
	struct proc_stat stat;
};
void proc_stat_read_many(const pid_t *pids, size_t n, struct proc_stat_reading *readings);
/* It may well be there: nothing that was known of it has changed, as far as can be told. */
bool proc_stat_is_unknown(int code);

/* The name may contain blanks and parentheses. -EBADMSG if a field is missing. */
int proc_stat_parse(struct view text, struct proc_stat *ret_stat);
/* A zombie, or a process about to be one: it has a pid but no memory. */
bool proc_stat_is_dead(const struct proc_stat *stat);
