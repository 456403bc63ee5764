/*
 * src/proc/file.h: opens the files behind mappings.
 *
 * Targets and authors of core files choose their names. Whatever a name turns out to mean, only
 * regular files on real file systems are opened for reading.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "proc/maps.h"

/* The exact file mapped at this address in a live process. */
int proc_file_open_mapped(pid_t pid, const struct proc_map *map, int *ret_fd, struct err *err);
/*
 * Its two steps: the file as a mere path (O_PATH), which opens nothing; then for reading. -EINVAL
 * unless it is a regular file on a real file system.
 */
int proc_file_find_mapped(pid_t pid, const struct proc_map *map, int *ret_path_fd);
int proc_file_reopen(int path_fd, int *ret_fd);
/* A file of this machine, named by a core. The caller verifies that it is the right one. */
int proc_file_open_path(const char *path, int *ret_fd, struct err *err);
