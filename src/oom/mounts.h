/*
 * src/oom/mounts.h: finds the memory cgroups.
 *
 * If nobody has mounted them, they are mounted privately: detached, invisible in the file system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define OOM_PATH_MAX 512

struct oom_mounts {
	struct oom_mount {
		char dir[OOM_PATH_MAX];	 /* "": there is none */
		char root[OOM_PATH_MAX]; /* which group that is; "" for the root */
		bool is_ours;		 /* detached: dir is its descriptor, */
		int fd;			 /* this one */
	} v1, v2;			 /* v1: of the memory controller */
};

/*
 * Finds at least one. -ENOENT: none is mounted, and we may not; -ENOTSUP: the kernel has no memory
 * controller. The error has a remedy.
 */
int oom_mounts_open(struct oom_mounts *ret_mounts, struct err *err);
void oom_mounts_close(struct oom_mounts *mounts); /* zeroed is fine */
/* From the text of /proc/self/mountinfo. verify: only reachable ones. */
void oom_mounts_parse(const char *text, bool verify, struct oom_mounts *ret_mounts);

/* "memory" in "rw,memory", "memory" in "cpu,memory": a whole word. */
bool oom_has_word(const char *list, size_t len, const char *word);
