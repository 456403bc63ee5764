/*
 * src/proc/aide/aides.h: processes that touch targets in our place.
 *
 * A target decides what its memory and its names mean. A page, or a file, may be served by a
 * program of its own (FUSE) that never answers: whoever reads it sleeps in the kernel, and not even
 * SIGKILL ends that. So aides read. One that does not answer in time is left behind; no user can
 * have more than a few of them. The thread that asked goes on.
 *
 * Without aides (in tests, and before they are started) callers read for themselves.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/err.h"
#include "proc/maps.h"
#include "proc/stat.h"

/* Most bytes of one reading of memory. */
#define PROC_AIDES_READ_MAX ((size_t)1 << 20)
/* Aides that hang, for the processes of one user (root may do worse anyway), and for all. */
#define PROC_AIDES_LOST_PER_USER 4
#define PROC_AIDES_LOST_OF_ROOT 16
#define PROC_AIDES_LOST_MAX 32

/*
 * Before the first thread: it forks. can_write: for proc_aides_write(); otherwise there is nobody
 * who has the rights to it.
 */
int proc_aides_start(bool can_write, struct err *err);
/* After the last thread that asks. Those that hang stay behind. */
void proc_aides_stop(void);
bool proc_aides_are_on(void);

/* How long this thread waits for an answer; two seconds until it says otherwise. */
void proc_aides_set_patience(uint64_t ns);

/* A process, and whom its aides are charged to. */
struct proc_aides_target {
	pid_t pid;
	uid_t uid; /* who answers for it */
};

/* -ESRCH if it has exited; as below if whose it is cannot be told. */
int proc_aides_find(pid_t pid, struct proc_aides_target *ret_target);

/*
 * All of these: -ETIMEDOUT if the target does not answer (its user is then looked up anew), -EBUSY
 * if an aide hangs for it already, or too many for its user; -EAGAIN if no aide could be started,
 * or it ended.
 *
 * As process_vm_readv(2), but returns -errno; -ESRCH if the address space of mem_fd is gone.
 */
ssize_t proc_aides_readv(struct proc_aides_target *target, int mem_fd, const struct iovec *local,
			 const struct iovec *remote, size_t n);
/* As pread(2), but returns -errno. */
ssize_t proc_aides_pread(struct proc_aides_target *target, int fd, void *dst, size_t len,
			 uint64_t off);
/*
 * Replaces `old`; see proc_mem_write_at(). What has timed out may happen yet. By an aide that is
 * started for this alone.
 */
int proc_aides_write(struct proc_aides_target *target, int mem_fd, uint64_t addr, const void *old,
		     const void *src, size_t len);
/* Appends /proc/PID/NAME, up to buf's maximum (-E2BIG, with what fits). Also without aides. */
int proc_aides_read(pid_t pid, const char *name, struct buf *text);
/* The same of where the link /proc/PID/NAME leads to, and of an open with these flags. */
int proc_aides_read_link(pid_t pid, const char *name, struct buf *text);
int proc_aides_open(pid_t pid, const char *name, int flags, int *ret_fd);
/* See proc_stat_read_many(). One that hangs costs a tenth of a second, whatever the patience. */
void proc_aides_read_stats(const pid_t *pids, size_t n, struct proc_stat_reading *readings);
/* The file of a mapping; see proc_file_open_mapped(). */
int proc_aides_open_mapped(struct proc_aides_target *target, const struct proc_map *map,
			   int *ret_fd);
/*
 * The file NAME of DIR as the target sees them, with its rights: a regular file, no link, not
 * mounted over.
 */
int proc_aides_open_named(struct proc_aides_target *target, const char *dir, const char *name,
			  int *ret_fd);

/* See proc_public_read(). */
int proc_aides_read_public(pid_t pid, const char *path, struct buf *text, int64_t *ret_modified_ns);

struct proc_aides_status {
	size_t aides;	     /* alive and well */
	size_t lost;	     /* hang */
	uint64_t unanswered; /* readings without an answer in time, or not even tried, ever */
	bool spawner_ended;  /* somebody killed it: there will be no more aides */
	uint64_t cpu_ns;     /* used by all of them, ever */
};
void proc_aides_status(struct proc_aides_status *ret_status);
