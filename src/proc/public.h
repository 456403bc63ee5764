/*
 * src/proc/public.h: reads a file that a target names, if everybody on this machine may read it.
 *
 * What is read so is shown to every user, and whoever controls a target, or the names that its
 * program holds, decides on the name. So it is opened with the rights of a user whom nobody is and
 * who owns nothing, by its name in our own root directory; and only if the target sees the very
 * same file by that name, which in a container it does not.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * Appends the whole file; by an aide, if they are on. -EACCES: not everybody may read it, -EXDEV:
 * the target sees another file, or none, -EINVAL: no absolute path of a regular file, -E2BIG:
 * larger than text may be, -ENOENT, -EPERM: we may not become another user; or as proc/aide/aides.h
 * says.
 */
int proc_public_read(pid_t pid, const char *path, struct buf *text, int64_t *ret_modified_ns);
/* The same in this thread. */
int proc_public_read_here(pid_t pid, const char *path, struct buf *text, int64_t *ret_modified_ns);
