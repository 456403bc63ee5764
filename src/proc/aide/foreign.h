/* src/proc/aide/foreign.h: file systems that may never answer; private to this folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Whether reading this file of a process may hang because somebody serves the file system: a user
 * (FUSE), another machine, or layers of these.
 */
bool proc_aide_is_foreign(int fd, pid_t pid);
/* Whether the text, a mountinfo file, lists the mount. */
bool proc_aide_has_mount(const char *mountinfo, uint64_t mount_id);
