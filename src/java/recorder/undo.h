/* src/java/recorder/undo.h: removes from a JVM what a note says we put in. */
#pragma once

#include "base/err.h"
#include "java/recorder/note.h"
#include "proc/id.h"

/* Held by whoever works on a JVM. A descriptor to close; -EBUSY if another sonde has it. */
int java_recording_lock(const struct proc_id *id, int *ret_fd, struct err *err);

/*
 * With the lock held. Removes the note once everything is undone. -EBUSY: a recording of the user
 * has files in our file system; -ETIMEDOUT and others: the JVM does not cooperate. Then the note
 * stays.
 */
int java_recording_undo(const char *state_dir, const struct java_note *note, struct err *err);
