/*
 * src/cpu/interp/interp.h: interpreted languages, and those compiled at run time.
 *
 * Native frames of such a program show the interpreter, not what it executes. Interpreters with a
 * row in kinds.h provide their own frames as well: BPF takes them with the sample, names are read
 * from the process's memory while it is alive, and they are shown instead of the native frames that
 * ran them.
 *
 * Everything read was written by the program and may be anything. All of this runs on the sampler's
 * thread: memory is read by proc_mem_open_bare(), which never waits, files within the limits of
 * elf/image.h. If the thread hangs all the same, the agent abandons it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cpu/interp/interp_shared.h"
#include "elf/image.h"
#include "proc/mem.h"

#define INTERP_TEXT_MAX 256
/* Functions of one frame: compilers inline them. */
#define INTERP_NAMES_MAX 16

/* In a file, at link-time addresses; or in a process, at its addresses. */
struct interp {
	enum interp_kind kind;		    /* INTERP_NONE: none */
	uint32_t row;			    /* of the layout, for BPF */
	const struct interp_layout *layout; /* lives as long as the layouts */
	uint64_t addresses[INTERP_ADDRESSES];
};

/* The result of a detection. */
struct interp_found {
	struct interp_layout layout;
	uint64_t addresses[INTERP_ADDRESSES];
};

struct interp_name {
	char function[INTERP_TEXT_MAX]; /* safe to show */
	char file[INTERP_TEXT_MAX];	/* "" if unknown */
	int64_t line;
	int64_t start_line;
};

/* The role of a native frame for its interpreter. */
enum interp_part {
	INTERP_PART_NONE,
	INTERP_PART_LOOP, /* ran frames, which are shown instead */
	INTERP_PART_GLUE, /* duplicates one of its frames; not shown */
};

struct interp_ops {
	const char *runtime; /* its name in `sonde ps` */
	/* Whether frames of this version ("3.11") are supported. */
	bool (*is_supported)(const char *version);
	/*
	 * Shown in brackets: for a frame without a name, after the last frame if there are more,
	 * and as the outermost if frames are missing.
	 */
	const char *unnamed;
	const char *more;
	const char *missing;

	/* Whether to examine a file at all. */
	bool (*is_named)(const char *path);
	/* Whether it is a supported interpreter; link-time addresses. */
	bool (*detect)(const struct elf_image *image, const char *path, struct interp_found *ret);
	/*
	 * Reads what only the process has; addresses are its own by now. NULL: everything is in the
	 * file.
	 */
	bool (*locate)(struct proc_mem *mem, struct interp_found *found);

	enum interp_part (*part)(const char *symbol, bool has_file);
	/*
	 * The functions of a frame, innermost first; returns how many, at most cap. -ESRCH: the
	 * process has exited; -EBADMSG: not a frame of it, or no longer the same.
	 */
	int (*name)(struct proc_mem *mem, const struct interp *interp,
		    const struct interp_frame *frame, struct interp_name *ret, size_t cap);
	/* Its approximate place in memory. */
	uint64_t (*address)(const struct interp_frame *frame);
};

/* Never NULL, except for INTERP_NONE. */
const struct interp_ops *interp_ops(enum interp_kind kind);

/* Whether this runtime and version is a supported interpreter. */
bool interp_is_supported(const char *runtime, const char *version);

/* The layouts in BPF. A machine has few, so they are never removed. */
struct interp_layouts {
	struct interp_layout *rows; /* INTERP_LAYOUTS of them, read by BPF; borrowed */
	uint32_t len;
};

/* INTERP_NONE if the file is not an interpreter, or its layout does not fit. */
void interp_detect(struct interp_layouts *layouts, const struct elf_image *image, const char *path,
		   struct interp *ret_interp);
/* The same for a file mapped by a process with a bias (address - bias is the link-time address). */
void interp_locate(struct interp_layouts *layouts, const struct interp *file, uint64_t bias,
		   pid_t pid, struct interp *ret_interp);
