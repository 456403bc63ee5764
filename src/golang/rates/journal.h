/*
 * src/golang/rates/journal.h: the sampling rates that we have forced, noted on disk.
 *
 * A note is durable before the rate is written, so that whatever happens to us, the next sonde
 * knows what to restore. The file `forced-rates` has a line for each:
 *
 *   PID START-TICKS ADDRESS-SPACE OLD-RATE OUR-RATE [KIND]
 *
 * Pid and start time identify the process; the address space (see rates.c) changes with an exec.
 * KIND is block or mutex; without it, it is the heap's rate.
 *
 * Nothing is cached: every call reads the file again, under a lock, so that several sondes can
 * share a directory. It is rejected unless private: whoever can write it could make us write into
 * processes.
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
/* If there is no directory for it. */
#define GOLANG_RATE_JOURNAL_REMEDY "set SONDE_DATA_DIR to your own directory"

struct golang_rate_journal; /* opaque; thread-safe */

/* Reads and creates nothing yet. */
int golang_rate_journal_open(const char *dir, struct golang_rate_journal **ret_journal,
			     struct err *err);
void golang_rate_journal_close(struct golang_rate_journal *journal); /* NULL is fine */
DEFINE_CLEANUP(struct golang_rate_journal, golang_rate_journal_close)

/* Durable on return; replaces an earlier note of that rate. */
int golang_rate_journal_add(const struct golang_rate_journal *journal,
			    const struct golang_rate_note *note, struct err *err);
/* Removes exactly this note: one added by another sonde since stays. */
int golang_rate_journal_remove(const struct golang_rate_journal *journal,
			       const struct golang_rate_note *note, struct err *err);
/*
 * All notes; none if the file or directory is missing. -EBADMSG for a file that others can write.
 * The caller frees the array.
 */
int golang_rate_journal_read(const struct golang_rate_journal *journal,
			     struct golang_rate_note **ret_notes, size_t *ret_len, struct err *err);
/* 1 if exactly this note exists. */
int golang_rate_journal_has(const struct golang_rate_journal *journal,
			    const struct golang_rate_note *note, struct err *err);

/* Skips invalid lines. Returns the number of notes, at most GOLANG_RATE_NOTES_MAX. */
size_t golang_rate_notes_parse(struct view text,
			       struct golang_rate_note notes[static GOLANG_RATE_NOTES_MAX]);
int golang_rate_notes_print(const struct golang_rate_note *notes, size_t len, struct buf *out);
