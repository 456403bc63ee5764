/*
 * src/proc/aide/rights.c: see rights.h. Raw system calls: the C library's would change all threads.
 */
#include "proc/aide/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

struct proc_rights {
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	uid_t fsuid;
	gid_t fsgid;
	bool changed; /* the ids; capabilities always are */
	int dumpable;
	int n_groups;
	gid_t groups[]; /* ours */
};

static int caps_get(struct __user_cap_data_struct *caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &head, caps) < 0 ? -errno : 0;
}

static int caps_set(const struct __user_cap_data_struct *caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

/* setfsuid() reports no failure: ask for an impossible id to learn the current one. */
static bool fs_ids_are(uid_t uid, gid_t gid)
{
	return (uid_t)syscall(SYS_setfsuid, -1) == uid && (gid_t)syscall(SYS_setfsgid, -1) == gid;
}

static struct proc_rights *own_rights(void)
{
	int n = getgroups(0, NULL);
	struct proc_rights *own =
		n < 0 ? NULL : calloc(1, sizeof(*own) + (size_t)n * sizeof(own->groups[0]));

	if (!own)
		return NULL;
	own->n_groups = getgroups(n, own->groups);
	own->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	own->fsuid = (uid_t)syscall(SYS_setfsuid, -1);
	own->fsgid = (gid_t)syscall(SYS_setfsgid, -1);
	if (own->n_groups < 0 || caps_get(own->caps) < 0) {
		free(own);
		return NULL;
	}
	return own;
}

static bool ids_set(uid_t fsuid, gid_t fsgid)
{
	(void)syscall(SYS_setfsgid, fsgid);
	(void)syscall(SYS_setfsuid, fsuid);
	return fs_ids_are(fsuid, fsgid);
}

void proc_rights_return(struct proc_rights *own)
{
	bool all;

	if (!own)
		return;
	/* Capabilities first, for setgroups(); and last, because changing the user drops some. */
	all = caps_set(own->caps) == 0;
	if (own->changed)
		all = all && syscall(SYS_setgroups, own->n_groups, own->groups) == 0 &&
		      ids_set(own->fsuid, own->fsgid) && caps_set(own->caps) == 0;
	if (!all)
		abort();
	/* The kernel clears it with each change of a user, for the whole process. */
	if (own->changed && own->dumpable == 1)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	free(own);
}

/* Its own user needs no more than to do without capabilities. */
static int rights_change(struct proc_rights *own, const struct proc_status *status)
{
	if (own->fsuid == status->fsuid && own->fsgid == status->fsgid && own->fsuid != 0)
		return 0;
	if (syscall(SYS_setgroups, status->n_groups, status->groups) < 0)
		return -EPERM;
	own->changed = true;
	return ids_set(status->fsuid, status->fsgid) ? 0 : -EPERM;
}

int proc_rights_take(const struct proc_status *status, struct proc_rights **ret_own)
{
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	struct proc_rights *own = own_rights();
	int r = own ? rights_change(own, status) : -ENOMEM;

	if (r == 0) {
		memcpy(none, own->caps, sizeof(none));
		for (size_t i = 0; i < ARRAY_SIZE(none); i++)
			none[i].effective = 0;
		r = caps_set(none);
	}
	if (r < 0) {
		proc_rights_return(own);
		return r;
	}
	*ret_own = own;
	return 0;
}
