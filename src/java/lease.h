/*
 * src/java/lease.h: what a sonde holds in a JVM, from its note to the end.
 *
 * Whoever puts something into a JVM first takes its lock and writes a note, then attaches, and
 * finally removes everything in the note. After kill -9 the next start does that
 * (java_recordings_restore()).
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "java/attach/attach.h"
#include "java/recorder/note.h"
#include "proc/id.h"

struct java_lease {
	char *state_dir;
	struct java_note note;
	struct java_attach *attach;
	int dirfd; /* our file system in the target's /tmp; set by whoever mounts it */
	int lock;
	bool noted;
};

int java_lease_init(struct java_lease *lease, const char *state_dir, struct err *err);
/* Checks to make before touching the JVM. -ENOTSUP, -EPERM. */
int java_lease_check(const struct proc_id *id, struct err *err);
/* -EBUSY: another sonde has it; others as in java_attach_open(). */
int java_lease_begin(struct java_lease *lease, const struct proc_id *id, struct err *err);
/* On failure the note stays. 0 if there is nothing to do. */
int java_lease_end(struct java_lease *lease, struct err *err);
void java_lease_release(struct java_lease *lease); /* ends it if necessary */
