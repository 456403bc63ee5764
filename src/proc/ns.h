/* src/proc/ns.h: the namespaces of a process. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* The number of its namespace of this kind ("mnt", "user"). -ESRCH, -EPERM, -ETIMEDOUT. */
int proc_ns_read(pid_t pid, const char *kind, uint64_t *ret_number);
