/*
 * src/proc/named.h: opens a file by a name that the target controls.
 *
 * By links, mounts and renaming a target decides what its names mean. So they are followed inside
 * its root directory and with its rights: we never read for it what it could not read itself.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/*
 * The file NAME of DIR, absolute, as the target sees them. The last name must be a regular file
 * where it stands: no link, and nothing mounted over it. By an aide, if they are on: then it may be
 * a mere path (io_set_path_reader()). -ENOENT, -EPERM, -EINVAL (not a regular file), -ETIMEDOUT.
 */
int proc_named_open(pid_t pid, const char *dir, const char *name, int *ret_fd);
/* The same in this thread, as a mere path. */
int proc_named_find(pid_t pid, const char *dir, const char *name, int *ret_path_fd);
