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
/* A file of this machine, named by a core. The caller verifies that it is the right one. */
int proc_file_open_path(const char *path, int *ret_fd, struct err *err);
