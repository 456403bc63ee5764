/*
 * src/oom/victims.h: reports processes that the kernel kills for lack of memory, on the whole
 * machine or in a cgroup.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

struct oom_victims; /* opaque */

struct oom_victim {
	pid_t pid;
	uint64_t mono_ns;   /* when it was picked */
	uint64_t rss_bytes; /* 0: not known */
};

/* -EPERM or -ENOTSUP if the kernel denies it, or lacks the tracepoint. */
int oom_victims_open(struct oom_victims **ret_victims, struct err *err);
/*
 * Waits for victims, or until wake_fd (an eventfd, or -1) is readable, and calls hear for each. 0,
 * or -errno if listening is no longer possible.
 */
int oom_victims_wait(struct oom_victims *victims, int wake_fd,
		     void (*hear)(void *context, const struct oom_victim *victim), void *context);
/* Victims lost because they came too fast. */
uint64_t oom_victims_lost(const struct oom_victims *victims);
void oom_victims_close(struct oom_victims *victims); /* NULL is fine */
DEFINE_CLEANUP(struct oom_victims, oom_victims_close)
