/*
 * src/java/recorder/note.h: what we have put into a JVM, noted on disk.
 *
 * A note is durable before anything is done, so that whatever happens to us, the next start knows
 * what to remove. Each is a separate file, java-recording-PID-START, so that several sondes can
 * share a directory; it has one line:
 *
 *   PID START-TICKS MOUNT-NAMESPACE TOKEN DIRECTORY
 *
 * DIRECTORY is where the JVM kept its recordings before, "" if not known yet.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/view.h"
#include "proc/id.h"

struct java_note {
	struct proc_id id;
	uint64_t mount_ns; /* inode of /proc/PID/ns/mnt */
	uint64_t token; /* names the recording and its directory; 0: torn, nothing was done yet */
	char before[256];
};

#define JAVA_NOTES_MAX 4096

/* For the process as it is now, with an unguessable token. */
int java_note_make(const struct proc_id *id, struct java_note *ret_note, struct err *err);
/* Durable on return; replaces an earlier note of the process. */
int java_note_save(const char *dir, const struct java_note *note, struct err *err);
int java_note_remove(const char *dir, const struct java_note *note, struct err *err);
/*
 * All notes in dir, including unfinished ones; ignores invalid files. The caller frees the array.
 */
int java_notes_read(const char *dir, struct java_note **ret_notes, size_t *ret_len,
		    struct err *err);
/* -EBADMSG for an invalid line. */
int java_note_parse(struct view line, struct java_note *ret_note);

/* ".sonde-0123456789abcdef": the name of the directory in the target's /tmp. */
#define JAVA_NOTE_NAME 32
void java_note_dir_name(const struct java_note *note, char dst[JAVA_NOTE_NAME]);
/*
 * "sonde-0123456789abcdef": the name of the recording. One with other settings that takes its place
 * has JAVA_NOTE_CALM behind that.
 */
#define JAVA_NOTE_CALM "-calm"
void java_note_recording_name(const struct java_note *note, char dst[JAVA_NOTE_NAME]);
