/*
 * src/bpf/skeleton.h: loads BPF objects by the skeletons that bpftool generates.
 *
 * ROOM/NAME.bpf.c, which starts with bpf/program.bpf.h, becomes <bpf/NAME_bpf.skel.h> by a line in
 * the room's meson.build, and is used like this:
 *
 *   struct NAME_bpf *b = NULL;
 *
 *   r = bpf_skeleton_open(NAME_bpf, &b, err);
 *   b->rodata->...                                 settings, sizes of maps
 *   r = bpf_skeleton_load(b->skeleton, NULL, err);
 *   r = bpf_skeleton_attach(b->progs.on_exit, "sched_process_exit", &b->links.on_exit, err);
 *   NAME_bpf__destroy(b);
 *
 * Errors have causes and remedies: -EPERM if the kernel denies it, -ENOTSUP if it lacks something.
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

/* A helper that older kernels lack. */
struct bpf_need {
	const char *what; /* what needs it: "CPU profiles" */
	enum bpf_prog_type type;
	enum bpf_func_id helper;
	const char *name;  /* "bpf_loop()" */
	const char *since; /* "5.17" */
};

/* ret becomes a skeleton, not loaded yet. */
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
/* Its first step: whether the kernel has what all objects need. */
int bpf_skeleton_prepare(struct err *err);

/* need: named in the error if it is missing; NULL: none. */
int bpf_skeleton_load(struct bpf_object_skeleton *skeleton, const struct bpf_need *need,
		      struct err *err);
/* Attaches a program to the tracepoint of its section. Detached by the skeleton's destroy. */
int bpf_skeleton_attach(struct bpf_program *program, const char *tracepoint,
			struct bpf_link **ret_link, struct err *err);

/*
 * Maps an array shared with BPF (BPF_F_MMAPABLE); NULL and errno on failure. Unmap with munmap().
 */
void *bpf_skeleton_map(const struct bpf_map *map, size_t size);
