/*
 * src/bpf/skeleton.h: loads BPF objects by the skeletons that bpftool makes of them.
 *
 * ROOM/NAME.bpf.c, which begins with bpf/program.h, becomes <bpf/NAME_bpf.skel.h> by a line in the
 * room's meson.build, and is used so:
 *
 *   struct NAME_bpf *b = NULL;
 *
 *   r = bpf_skeleton_open(NAME_bpf, &b, err);
 *   b->rodata->...                                 settings, sizes of maps
 *   r = bpf_skeleton_load(b->skeleton, NULL, err);
 *   r = bpf_skeleton_attach(b->progs.on_exit, "sched_process_exit", &b->links.on_exit, err);
 *   NAME_bpf__destroy(b);
 *
 * Errors have causes and remedies: -EPERM, -ENOTSUP where the kernel does not let us or lacks
 * something.
 */
#pragma once

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>

#include "base/err.h"
#include "bpf/kernel.h"

struct bpf_link;
struct bpf_map;
struct bpf_object_skeleton;
struct bpf_program;

/* A helper that an object's programs call and older kernels lack. */
struct bpf_need {
	const char *what; /* needs it: "CPU profiles" */
	enum bpf_prog_type type;
	enum bpf_func_id helper;
	const char *name;  /* "bpf_loop()" */
	const char *since; /* "5.17" */
};

/* *ret becomes a skeleton that is not loaded yet. */
#define bpf_skeleton_open(name, ret, err)                                                          \
	({                                                                                         \
		int _open = bpf_skeleton_prepare(err);                                             \
		if (_open == 0) {                                                                  \
			*(ret) = name##__open();                                                   \
			if (!*(ret))                                                               \
				_open = bpf_kernel_explain("bpf()", -errno, (err));                \
		}                                                                                  \
		_open;                                                                             \
	})
/* Its first half: whether the kernel has what all objects need. */
int bpf_skeleton_prepare(struct err *err);

/* need: for the sentence that says why it failed; NULL: nothing special. */
int bpf_skeleton_load(struct bpf_object_skeleton *skeleton, const struct bpf_need *need,
		      struct err *err);
/* Attaches a program to the tracepoint that its section names. The skeleton's destroy detaches. */
int bpf_skeleton_attach(struct bpf_program *program, const char *tracepoint,
			struct bpf_link **ret_link, struct err *err);

/* The memory of an array that BPF shares (BPF_F_MMAPABLE); NULL and errno. For munmap(). */
void *bpf_skeleton_map(const struct bpf_map *map, size_t size);
