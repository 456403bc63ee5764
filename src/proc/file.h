/*
 * src/proc/file.h: opens the files behind mappings.
 *
 * Their names are chosen by targets and by authors of core files: only regular files of real
 * file systems are ever opened for reading, whatever the name turns out to mean.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "proc/maps.h"

/* The very file that is mapped there in a live process. */
int proc_file_open_mapped(pid_t pid, const struct proc_map *map, int *ret_fd, struct err *err);
/* A file of this machine, named by a core. The caller proves that it is the one meant. */
int proc_file_open_path(const char *path, int *ret_fd, struct err *err);
