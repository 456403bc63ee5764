/*
 * src/proc/subuid.h: whose user ids of a range are (subuid(5)).
 *
 * A user without rights may have been given thousands of ids for containers of their own. With the
 * user's own id they are one owner, so budgets and shares must not count them one by one. Ids given
 * to root are an owner of their own: they are there to have less than root has.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_SUBUID_PATH "/etc/subuid"
#define PROC_SUBUID_PASSWD_PATH "/etc/passwd"
#define PROC_SUBUID_RANGES 1024

/* A zeroed one is empty. */
struct proc_subuids {
	size_t len;
	struct proc_subuid_range {
		uint32_t first;
		uint32_t n;
		uint64_t user; /* a hash of the name */
		uid_t owner;   /* that user's id; the first of the ids given, if unknown */
	} ranges[PROC_SUBUID_RANGES];
};
/* Lines that are none, and ranges over the limit, are skipped. */
void proc_subuids_parse(struct proc_subuids *s, const char *text);
/* The ids of the users themselves, by the text of a passwd(5). Ranges come first. */
void proc_subuids_parse_users(struct proc_subuids *s, const char *text);
/* Of files; what cannot be read is empty. */
void proc_subuids_read(struct proc_subuids *s, const char *path, const char *passwd_path);
/* The id that stands for all of that user's; uid itself if it is of no range. */
uid_t proc_subuids_owner(const struct proc_subuids *s, uid_t uid);
