/*
 * src/oom/limit.h: how close a process is to the memory limits of its cgroups, version 1 or 2.
 *
 * Page cache that the kernel would drop first does not count: a group that reads files is full of
 * it without being in danger.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "oom/mounts.h"

struct oom_limit; /* opaque: the groups of one process that have a limit */

struct oom_fill {
	uint64_t used_bytes;
	uint64_t limit_bytes;
};

/* From the text of /proc/PID/cgroup. Reopen to see changed limits. */
int oom_limit_open(const struct oom_mounts *mounts, const char *cgroup,
		   struct oom_limit **ret_limit, struct err *err);
/* Whether some group is at least this full; *ret_fill says which. One read per group if not. */
bool oom_limit_is_near(struct oom_limit *limit, unsigned int percent, struct oom_fill *ret_fill);
/*
 * If not: the time until the first group is that full, at the growth since the last call. 0 the
 * first time, as growth is unknown; UINT64_MAX if none grows.
 */
uint64_t oom_limit_left_ns(struct oom_limit *limit, unsigned int percent, uint64_t now_ns);
void oom_limit_close(struct oom_limit *limit); /* NULL is fine */
DEFINE_CLEANUP(struct oom_limit, oom_limit_close)
