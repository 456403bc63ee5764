/*
 * src/golang/rate_journal.h: which sampling rates of programs we have changed, noted on disk.
 *
 * A note is durable before the rate is written, so that whatever happens to us, the next sonde
 * finds out what to set back. The file `forced-rates` has a line for each:
 *
 *   PID START-TICKS ADDRESS-SPACE OLD-RATE OUR-RATE [KIND]
 *
 * Pid and start time name the process, the address space (see rates.c) what it was before an exec.
 * KIND is block or mutex; without one it is the heap's.
 *
 * Nothing is kept in memory: every call reads the file anew, under a lock, so that several of us
 * can share a folder. It is ours alone, or it is refused: who could write it could have us write
 * into programs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"
#include "proc/id.h"

enum golang_rate_kind { GOLANG_RATE_HEAP, GOLANG_RATE_BLOCK, GOLANG_RATE_MUTEX };

struct golang_rate_note {
	struct proc_id id;
	uint64_t space;
	int64_t old;
	int64_t ours;
	enum golang_rate_kind kind;
};

#define GOLANG_RATE_NOTES_MAX ((size_t)4096)
/* Where there is no folder for it. */
#define GOLANG_RATE_JOURNAL_REMEDY "set SONDE_DATA_DIR to a folder of your own"

struct golang_rate_journal; /* opaque; safe for several threads */

/* Nothing is read or made yet. */
int golang_rate_journal_open(const char *dir, struct golang_rate_journal **ret_journal,
			     struct err *err);
void golang_rate_journal_close(struct golang_rate_journal *journal); /* NULL is fine */
DEFINE_CLEANUP(struct golang_rate_journal, golang_rate_journal_close)

/* Durable when it returns; replaces an earlier note of that rate. */
int golang_rate_journal_add(const struct golang_rate_journal *journal,
			    const struct golang_rate_note *note, struct err *err);
/* Takes out exactly this one: what another sonde has noted since stays. */
int golang_rate_journal_remove(const struct golang_rate_journal *journal,
			       const struct golang_rate_note *note, struct err *err);
/*
 * All notes; none where there is no file, nor a folder. -EBADMSG for a file that others could have
 * written. The array is the caller's to free.
 */
int golang_rate_journal_read(const struct golang_rate_journal *journal,
			     struct golang_rate_note **ret_notes, size_t *ret_len, struct err *err);
/* 1 when exactly this one is there. */
int golang_rate_journal_has(const struct golang_rate_journal *journal,
			    const struct golang_rate_note *note, struct err *err);

/* Lines that make no sense are left out. Returns how many do, at most GOLANG_RATE_NOTES_MAX. */
size_t golang_rate_notes_parse(struct view text,
			       struct golang_rate_note notes[static GOLANG_RATE_NOTES_MAX]);
int golang_rate_notes_print(const struct golang_rate_note *notes, size_t len, struct buf *out);
