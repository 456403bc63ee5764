/*
 * src/proc/aide/aide.h: one aide, for as long as it serves a thread; private to this folder.
 *
 * Taken, asked, and given back; or left behind, which frees it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/aide/aides.h"
#include "proc/aide/wire.h"

struct proc_aide {
	struct proc_aide *next;
	int sock;
	int pidfd;
	struct proc_aide_shared *shared;
	uint64_t cpu_ns;      /* as of its last answer */
	uint64_t patience_ns; /* of its socket */
	uint64_t idle_ns;     /* since when it is idle */
	enum proc_aide_kind kind;
};

/* For many targets at once (NULL) it is for the caller to look at budgets. */
int proc_aide_take(const struct proc_aides_target *target, struct proc_aide **ret_aide);
/* For one write: it ends when it is given back. */
int proc_aide_take_writer(const struct proc_aides_target *target, struct proc_aide **ret_aide);
void proc_aide_give_back(struct proc_aide *aide, const struct proc_aides_target *target,
			 const struct proc_aide_answer *answer);
/* It hangs, or is gone; so long have we waited. The target's user is looked up anew. */
void proc_aide_leave(struct proc_aide *aide, struct proc_aides_target *target, uint64_t waited_ns);
/* The answer to what is in the shared memory; on failure the aide is gone. */
int proc_aide_ask(struct proc_aide *aide, struct proc_aides_target *target,
		  const struct proc_aide_request *request, int fd,
		  struct proc_aide_answer *ret_answer, int *ret_fd);

/* How long to wait for what comes from its socket. */
int proc_aide_set_patience(struct proc_aide *aide, uint64_t ns);
/* Adds what it has used to the sum. */
void proc_aide_count(struct proc_aide *aide, const struct proc_aide_answer *answer);

/* Whether this process is not to be asked now. */
bool proc_aide_refuses(pid_t pid);
/* Nothing of it can be read, not only a part. */
void proc_aide_note_stuck(pid_t pid);
/* So long have we slept for a process of this user. */
void proc_aide_charge(uid_t uid, uint64_t ns);

/* As pread(2), of a file that an aide has opened as a mere path. */
ssize_t proc_aide_read_path(int fd, void *dst, size_t len, uint64_t off);
