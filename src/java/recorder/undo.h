/* src/java/recorder/undo.h: removes from a JVM what a note says we put in. */
#pragma once

#include "base/err.h"
#include "java/recorder/note.h"
#include "proc/id.h"

/* Whoever works on a JVM holds this lock. A descriptor to close; -EBUSY when another sonde has it.
 */
int java_recording_lock(const struct proc_id *id, int *ret_fd, struct err *err);

/*
 * With the lock held. Removes the note when all is done. -EBUSY: a recording of the user's has
 * files in our file system; -ETIMEDOUT and others: the JVM does not do it. The note stays then.
 */
int java_recording_undo(const char *state_dir, const struct java_note *note, struct err *err);
