/*
 * src/oom/mounts.h: where the control groups of memory are to be found.
 *
 * Where nobody has mounted them they are mounted for us alone: detached, so that nothing of it is
 * seen in the file system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define OOM_PATH_MAX 512

struct oom_mounts {
	struct oom_mount {
		char dir[OOM_PATH_MAX];	 /* "": there is none */
		char root[OOM_PATH_MAX]; /* which group that is; "" for the uppermost */
		bool is_ours;		 /* detached: dir is its descriptor, */
		int fd;			 /* this one */
	} v1, v2;			 /* v1: of the memory controller */
};

/*
 * With one of them at least. -ENOENT: none is mounted, and we may not; -ENOTSUP: the kernel has no
 * memory controller. The error has a remedy.
 */
int oom_mounts_open(struct oom_mounts *ret_mounts, struct err *err);
void oom_mounts_close(struct oom_mounts *mounts); /* zeroed is fine */
/* From the text of /proc/self/mountinfo. verify: only those that can be reached. */
void oom_mounts_parse(const char *text, bool verify, struct oom_mounts *ret_mounts);

/* "memory" in "rw,memory", "memory" in "cpu,memory": a whole word. */
bool oom_has_word(const char *list, size_t len, const char *word);
