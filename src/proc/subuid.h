/*
 * src/proc/subuid.h: whose user ids of a range are (subuid(5)).
 *
 * A user without rights may have been given thousands of ids for containers of their own. They are
 * one user all the same, so budgets and shares must not count them one by one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_SUBUID_PATH "/etc/subuid"
#define PROC_SUBUID_RANGES 1024

/* A zeroed one is empty. */
struct proc_subuids {
	size_t len;
	struct proc_subuid_range {
		uint32_t first;
		uint32_t n;
		uint64_t user; /* a hash of the name */
	} ranges[PROC_SUBUID_RANGES];
};
/* Lines that are none, and ranges over the limit, are skipped. */
void proc_subuids_parse(struct proc_subuids *s, const char *text);
/* Of a file; nothing if it cannot be read. */
void proc_subuids_read(struct proc_subuids *s, const char *path);
/* The id that stands for all of that user's; uid itself if it is of no range. */
uid_t proc_subuids_owner(const struct proc_subuids *s, uid_t uid);
