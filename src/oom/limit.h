/*
 * src/oom/limit.h: how near a process is to the limits of memory of its control groups, of version
 * 1 or 2.
 *
 * Page cache that the kernel would drop first does not count: a group that reads files is full of
 * it and is in no danger.
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

/* From the text of /proc/PID/cgroup. Limits that change later are seen by opening again. */
int oom_limit_open(const struct oom_mounts *mounts, const char *cgroup,
		   struct oom_limit **ret_limit, struct err *err);
/* Some group is at least so full; *ret_fill tells which. One read for a group that is not. */
bool oom_limit_is_near(struct oom_limit *limit, unsigned int percent, struct oom_fill *ret_fill);
/*
 * After a look that said no: how long it takes until the first group is that full, if all go on
 * growing as they did since the last time this was asked: 0 the first time, as that is not known
 * yet, and UINT64_MAX where none grows.
 */
uint64_t oom_limit_left_ns(struct oom_limit *limit, unsigned int percent, uint64_t now_ns);
void oom_limit_close(struct oom_limit *limit); /* NULL is fine */
DEFINE_CLEANUP(struct oom_limit, oom_limit_close)
