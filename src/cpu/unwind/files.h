/*
 * src/cpu/unwind/files.h: the executable files of the processes that were seen in samples.
 *
 * A file is known by device, inode, size and change time, and shared by all processes that map it;
 * its descriptor stays open, so that a file that is deleted or replaced can still be named after.
 * Ids are those in the frames that BPF sends. Files that no process and no undrained stack refers
 * to are kept for a minute, for the next process of the same program, and then dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cpu/bpf/shared.h"
#include "cpu/interp/interp.h"
#include "cpu/unwind/tables.h"
#include "proc/maps.h"

#define CPU_FILES_MAX 8192U
#define CPU_FILE_NONE UINT32_MAX

struct cpu_file {
	uint32_t id;
	uint32_t generation; /* differs when an id is used again */
	int fd;		     /* -1 for the vdso */
	bool is_vdso;
	bool is_go;	      /* names come from the Go tables */
	const char *path;     /* as the target sees it; control characters replaced */
	char build_id[41];    /* "" when there is none */
	struct interp interp; /* that it is, at link-time addresses */
};

struct cpu_files; /* opaque */

/* shared: CPU_FILES_MAX of them, where BPF reads them. All borrowed. */
int cpu_files_new(struct cpu_sampler_file *shared, struct cpu_tables *tables,
		  struct interp_layouts *layouts, struct cpu_files **ret_files, struct err *err);
void cpu_files_free(struct cpu_files *files); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_files, cpu_files_free)

/*
 * The file behind an executable mapping, and its bias (address - bias is the link-time address).
 * Takes a reference. CPU_FILE_NONE with code that has no file, or none in ELF (JIT). -ENOSPC: too
 * many files; such a mapping is to be left out.
 */
int cpu_files_open(struct cpu_files *files, pid_t pid, const struct proc_map *map, uint32_t *ret_id,
		   uint64_t *ret_bias);
void cpu_files_unref(struct cpu_files *files, uint32_t id); /* CPU_FILE_NONE is fine */

/* What else there is to do: called every millisecond or so while something takes long. */
struct cpu_pause {
	void (*call)(void *context);
	void *context;
};

/*
 * Tables are compiled one file at a time, the smallest first: it may take a while, and what others
 * ask for meanwhile is mostly cheaper. A file that has none is left to frame pointers. In a pause
 * (NULL is fine) files may be opened, wanted and let go of, but not loaded. False: nothing is
 * wanted.
 */
void cpu_files_want(struct cpu_files *files, uint32_t id);
bool cpu_files_load_next(struct cpu_files *files, const struct cpu_pause *pause);
bool cpu_files_is_wanted(const struct cpu_files *files); /* any */

/* NULL when there is none of that number, or it is younger than generation. */
const struct cpu_file *cpu_files_get(const struct cpu_files *files, uint32_t id,
				     uint32_t generation);
/* That of the youngest file. */
uint32_t cpu_files_generation(const struct cpu_files *files);

/* Drops files that were not used for a while. No stack may be left that has one of them. */
void cpu_files_sweep(struct cpu_files *files, uint64_t now_ns);

uint64_t cpu_files_lost(const struct cpu_files *files); /* left out, or without room for tables */
