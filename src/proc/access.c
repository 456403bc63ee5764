/*
 * src/proc/access.c: see access.h. The rules are those of ptrace(2), "Ptrace access mode checking":
 * same user and dumpable, or CAP_SYS_PTRACE; after that, Yama decides.
 */
#include "proc/access.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/host.h"

/* The text after "Key:" in a status file, or NULL. */
static const char *status_value(struct buf *text, const char *key)
{
	const char *s = buf_cstr(text);
	const char *at = s ? strstr(s, key) : NULL;

	return at ? at + strlen(key) : NULL;
}

/* False if one of the target's user ids is not ours; ret_uid is then that one. */
static bool access_same_user(pid_t pid, unsigned long *ret_uid)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(64 << 10);
	const char *value;
	char path[64];
	char *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (io_read_file(AT_FDCWD, path, &text, NULL) < 0)
		return true;
	value = status_value(&text, "\nUid:");
	for (int i = 0; value && i < 3; i++, value = end) {
		unsigned long uid = strtoul(value, &end, 10);

		if (end != value && uid != geteuid()) {
			*ret_uid = uid;
			return false;
		}
	}
	return true;
}

int proc_access_denied(pid_t pid, const char *who, struct err *err)
{
	int scope = proc_host_ptrace_scope();
	unsigned long uid;

	if (scope >= 3)
		return err_lack(err, -EPERM, ERR_CAUSE_DENIED, "lower it and reboot",
				"not enough permissions to read %s: kernel.yama.ptrace_scope is "
				"%d, which denies it to everyone",
				who, scope);
	/* Files in /proc belong to the target's user, like others. */
	if (proc_host_has_cap(CAP_SYS_PTRACE) && !proc_host_reads_all_files() &&
	    !access_same_user(pid, &uid))
		return err_lack(err, -EPERM, ERR_CAUSE_DENIED,
				"run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
				"not enough permissions to read %s: it belongs to user %lu, and "
				"sonde runs as user %lu without CAP_DAC_READ_SEARCH",
				who, uid, (unsigned long)geteuid());
	if (proc_host_has_cap(CAP_SYS_PTRACE))
		return err_lack(
			err, -EPERM, ERR_CAUSE_DENIED, "run as root on the host",
			"not enough permissions to read %s despite CAP_SYS_PTRACE: it is in "
			"another user namespace, or SELinux, AppArmor or seccomp denies it",
			who);
	if (!access_same_user(pid, &uid))
		return err_lack(err, -EPERM, ERR_CAUSE_DENIED, "run as root or as that user",
				"not enough permissions to read %s: it belongs to user %lu, and "
				"sonde runs as user %lu without CAP_SYS_PTRACE",
				who, uid, (unsigned long)geteuid());
	if (scope >= 1)
		return err_lack(err, -EPERM, ERR_CAUSE_DENIED,
				"run as root, or: sysctl kernel.yama.ptrace_scope=0",
				"not enough permissions to read %s: kernel.yama.ptrace_scope is "
				"%d, and sonde lacks CAP_SYS_PTRACE",
				who, scope);
	return err_lack(err, -EPERM, ERR_CAUSE_DENIED, "run as root",
			"not enough permissions to read %s: it is not dumpable (set-uid, file "
			"capabilities, or PR_SET_DUMPABLE), and sonde lacks CAP_SYS_PTRACE",
			who);
}
