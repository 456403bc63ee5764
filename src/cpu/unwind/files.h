/*
 * src/cpu/unwind/files.h: the executable files of sampled processes.
 *
 * Device, inode, size and change time identify a file, and all processes that map it share it. Its
 * descriptor stays open, so that a deleted or replaced file can still be symbolized. Ids are those
 * in BPF's frames. A file not referenced by any process or pending stack is closed, so that its
 * file system can be unmounted; its tables are kept for a minute, for the next process of the same
 * program.
 *
 * The tables of a large file are loaded in parts, when they are sampled. Each part has an id, too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cpu/bpf/shared.h"
#include "cpu/interp/interp.h"
#include "cpu/unwind/frame_pointers.h"
#include "cpu/unwind/tables.h"
#include "proc/maps.h"

#define CPU_FILES_MAX 8192U
#define CPU_FILE_NONE UINT32_MAX

struct cpu_file {
	uint32_t id;
	uint32_t generation; /* changes when an id is reused */
	int fd;		     /* -1 for the vdso, and while nothing refers to it */
	bool is_vdso;
	bool is_go;	      /* names come from the Go tables */
	const char *path;     /* as seen by the target; control characters replaced */
	char build_id[41];    /* "" if there is none */
	struct interp interp; /* if it is one, at link-time addresses */
	struct cpu_runtime runtime;
};

struct cpu_files; /* opaque */

/* shared: CPU_FILES_MAX entries, where BPF reads them. All borrowed. */
int cpu_files_new(struct cpu_sampler_file *shared, struct cpu_tables *tables,
		  struct interp_layouts *layouts, struct cpu_files **ret_files, struct err *err);
void cpu_files_free(struct cpu_files *files); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_files, cpu_files_free)

/*
 * The file behind an executable mapping, and its bias (address - bias is the link-time address).
 * Takes a reference. CPU_FILE_NONE for code without a file, or not in ELF (JIT). -ENOSPC: too many
 * files of this user (see shares.h) or of all; omit the mapping. A file and its tables are in the
 * share of one of the users that map it: another's if the first has no room for them.
 */
int cpu_files_open(struct cpu_files *files, pid_t pid, uid_t uid, const struct proc_map *map,
		   uint32_t *ret_id, uint64_t *ret_bias);
void cpu_files_unref(struct cpu_files *files, uint32_t id); /* CPU_FILE_NONE is fine */

/* Other work: called every millisecond or so while something takes long. */
struct cpu_pause {
	void (*call)(void *context);
	void *context;
};

/*
 * Compiles tables one file or part at a time, smallest first: it may take a while, and requests
 * that come meanwhile are mostly cheaper. Files without tables use frame pointers. During a pause
 * (NULL is fine) files may be opened, wanted and released, but not loaded. False: nothing is
 * wanted.
 */
void cpu_files_want(struct cpu_files *files, uint32_t id);
/* Of a file in parts, only the one with this link-time address. */
void cpu_files_want_at(struct cpu_files *files, uint32_t id, uint64_t vaddr);
bool cpu_files_load_next(struct cpu_files *files, const struct cpu_pause *pause);
bool cpu_files_is_wanted(const struct cpu_files *files); /* any file */

/* NULL if there is no such file, or it is newer than generation. */
const struct cpu_file *cpu_files_get(const struct cpu_files *files, uint32_t id,
				     uint32_t generation);
/* The generation of the newest file. */
uint32_t cpu_files_generation(const struct cpu_files *files);

/* Calls back before a file is closed, for others that keep it open. */
void cpu_files_on_close(struct cpu_files *files,
			void (*on_close)(void *context, const struct cpu_file *file),
			void *context);
/* Closes unused files, and forgets those not used for a while. No stack may refer to them. */
void cpu_files_sweep(struct cpu_files *files, uint64_t now_ns);

uint64_t cpu_files_lost(const struct cpu_files *files); /* omitted, or no room for tables */
