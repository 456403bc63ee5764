/*
 * src/cpu/files.h: the executable files that were seen in samples.
 *
 * A file is known by device, inode, size and change time, and shared by all processes that map it;
 * its descriptor stays open, so that a file that is deleted or replaced can still be named after.
 * Ids are those in the frames that BPF sends. Files that no process and no undrained stack refers
 * to are dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/maps.h"

#define CPU_FILES_MAX 8192U
#define CPU_FILE_NONE UINT32_MAX

struct cpu_file {
	uint32_t id;
	uint32_t generation; /* differs when an id is used again */
	int fd;		     /* -1 for the vdso */
	bool is_vdso;
	bool is_go;	   /* names come from the Go tables */
	const char *path;  /* as the target sees it; control characters replaced */
	char build_id[41]; /* "" when there is none */
};
