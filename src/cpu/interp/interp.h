/*
 * src/cpu/interp/interp.h: programs in languages that are interpreted, or compiled as they run.
 *
 * Of such a program the native frames show the interpreter at work, and not on what. One that has a
 * row in kinds.h tells its own frames as well: BPF takes them with the sample, names are read from
 * the process's memory while it lives, and they are shown in place of the native ones that ran
 * them.
 *
 * All that is read was written by the program, and may be anything. What is called here is called
 * on the sampler's thread: memory is read by proc_mem_open_bare(), which never waits, and files
 * within the limits of elf/image.h; the agent leaves that thread behind should it hang all the
 * same.
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
/* Functions of one frame: compilers put them into each other. */
#define INTERP_NAMES_MAX 16

/* In a file, at link-time addresses; or in a process, where it has them. */
struct interp {
	enum interp_kind kind;		    /* INTERP_NONE: there is none */
	uint32_t row;			    /* of the layout, for BPF */
	const struct interp_layout *layout; /* lives as long as the layouts */
	uint64_t addresses[INTERP_ADDRESSES];
};

/* What finding one gives. */
struct interp_found {
	struct interp_layout layout;
	uint64_t addresses[INTERP_ADDRESSES];
};

struct interp_name {
	char function[INTERP_TEXT_MAX]; /* safe to show */
	char file[INTERP_TEXT_MAX];	/* "" when unknown */
	int64_t line;
	int64_t start_line;
};

/* What a native frame of the process is to its interpreter. */
enum interp_part {
	INTERP_PART_NONE,
	INTERP_PART_LOOP, /* ran frames, which are shown in its place */
	INTERP_PART_GLUE, /* says the same as one of its frames: not shown */
};

struct interp_ops {
	const char *runtime; /* as `sonde ps` calls it */
	/* Whether frames of this version of it ("3.11") are told. */
	bool (*is_supported)(const char *version);
	/* Shown, in brackets: for a frame without a name, after the last frame where there are
	 * more, and as the outermost where they should be and none was found. */
	const char *unnamed;
	const char *more;
	const char *missing;

	/* Whether to look into a file at all. */
	bool (*is_named)(const char *path);
	/* Whether it is one that is known; addresses are those at link time. */
	bool (*detect)(const struct elf_image *image, const char *path, struct interp_found *ret);
	/* What only the process can tell: addresses are its own by now. NULL: all is in the file.
	 */
	bool (*locate)(struct proc_mem *mem, struct interp_found *found);

	enum interp_part (*part)(const char *symbol, bool has_file);
	/* The functions of a frame, the innermost first: how many, at most cap. -ESRCH: the process
	 * is gone; -EBADMSG: that is no frame of it, or another by now. */
	int (*name)(struct proc_mem *mem, const struct interp *interp,
		    const struct interp_frame *frame, struct interp_name *ret, size_t cap);
	/* Where in memory it is, about. */
	uint64_t (*address)(const struct interp_frame *frame);
};

/* Never NULL for a kind that is not INTERP_NONE. */
const struct interp_ops *interp_ops(enum interp_kind kind);

/* Whether there is an interpreter that runs so, and frames of that version are told. */
bool interp_is_supported(const char *runtime, const char *version);

/* The layouts that BPF knows. Those of a machine are few: they stay. */
struct interp_layouts {
	struct interp_layout *rows; /* INTERP_LAYOUTS of them, where BPF reads them; borrowed */
	uint32_t len;
};

/* INTERP_NONE where the file is none, or there is no room for its layout. */
void interp_detect(struct interp_layouts *layouts, const struct elf_image *image, const char *path,
		   struct interp *ret_interp);
/* That of a file which a process has mapped with a bias (address - bias is the link-time one). */
void interp_locate(struct interp_layouts *layouts, const struct interp *file, uint64_t bias,
		   pid_t pid, struct interp *ret_interp);
