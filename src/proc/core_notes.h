/* src/proc/core_notes.h: the notes of a core file that describe the program. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proc/maps.h"
#include "proc/mem.h"

/* A zeroed struct proc_notes is empty. */
struct proc_notes {
	struct buf auxv;	/* NT_AUXV as it is */
	struct proc_maps files; /* NT_FILE, sorted and disjoint */
	char name[20];		/* name of the program, from NT_PRPSINFO; "" if unknown */
	uint16_t machine;	/* whose registers NT_PRSTATUS has; set by the caller */
	struct proc_thread *threads;
	size_t n_threads, threads_cap;
	size_t seen; /* notes so far; bounded */
};

/* Adds one PT_NOTE segment. -EBADMSG for invalid notes. */
int proc_notes_read(struct proc_notes *notes, int fd, uint64_t off, uint64_t len, struct err *err);
void proc_notes_release(struct proc_notes *notes);
