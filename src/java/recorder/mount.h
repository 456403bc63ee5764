/*
 * src/java/recorder/mount.h: a small private file system for a JVM's recordings.
 *
 * A JVM whose recorder meets a full disk exits. So it gets a tmpfs that nobody else fills, mounted
 * in its own mount namespace on a new directory in its /tmp. The name cannot be guessed, and the
 * mount goes, by descriptors, to exactly the directory created, whatever its name comes to mean. A
 * short-lived thread enters the namespace and ends with it.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/view.h"
#include "java/attach/target.h"

/*
 * Ours takes some 20 MB of it, and memory is taken only as it is used. A recording that the user
 * starts before we notice, or after we were killed, must fit as well: 250 MB unless they say more.
 */
#define JAVA_MOUNT_BYTES ((uint64_t)320 << 20)

/* The file in it with the settings. */
#define JAVA_MOUNT_SETTINGS "settings.jfc"

/* Whether we may at all: -EPERM, or -ENOTSUP where the kernel is too old. */
int java_mount_check(struct err *err);

/*
 * Makes /tmp/NAME for the target, owned by its user, with the settings in it. The descriptor is of
 * its topmost directory. Nothing is left when it fails.
 */
int java_mount_make(const struct java_target *target, const char *name, struct view settings,
		    int *ret_dirfd, struct err *err);

/*
 * Takes /tmp/NAME away again, from the mount namespace with that inode, through any process that
 * is in it; pid is tried first. 0 also when it is not there any more.
 */
int java_mount_remove(uint64_t mount_ns, pid_t pid, const char *name, struct err *err);
