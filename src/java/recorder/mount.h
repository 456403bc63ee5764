/*
 * src/java/recorder/mount.h: a small private file system for a JVM's recordings.
 *
 * A JVM whose recorder meets a full disk exits. So it gets a tmpfs that nobody else fills, mounted
 * in its own mount namespace on a new directory in its /tmp. The name cannot be guessed, and the
 * mount goes, by descriptors, to exactly the directory created, even if its name is reused. A
 * short-lived thread enters the namespace and exits there.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/view.h"
#include "java/attach/target.h"

/*
 * Ours uses some 20 MB; memory is taken only as needed. A recording that the user starts before we
 * notice, or after we were killed, must fit as well: 250 MB by default.
 */
#define JAVA_MOUNT_BYTES ((uint64_t)320 << 20)

/* The settings file in it. */
#define JAVA_MOUNT_SETTINGS "settings.jfc"

/* Whether we may mount at all: -EPERM, or -ENOTSUP if the kernel is too old. */
int java_mount_check(struct err *err);

/*
 * Creates /tmp/NAME for the target, owned by its user, with the settings in it. Returns a
 * descriptor of its top directory. Leaves nothing behind on failure.
 */
int java_mount_make(const struct java_target *target, const char *name, struct view settings,
		    int *ret_dirfd, struct err *err);

/* Adds a file of ours to it. -EEXIST if the target has put one there. */
int java_mount_add(int dirfd, const char *name, struct view contents);

/*
 * Removes /tmp/NAME from the mount namespace with that inode, through any process in it, pid first.
 * Also 0 if it no longer exists.
 */
int java_mount_remove(uint64_t mount_ns, pid_t pid, const char *name, struct err *err);
