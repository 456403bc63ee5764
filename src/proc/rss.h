/* src/proc/rss.h: how much memory of a process is resident. Reading it never waits for it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* In bytes. pid 0: our own. 0 if it has exited, or has no memory. */
uint64_t proc_rss_bytes(pid_t pid);
