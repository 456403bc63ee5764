/*
 * src/proc/access.c: see access.h. The rules are those of ptrace(2), "Ptrace access mode checking":
 * same user and dumpable, or CAP_SYS_PTRACE; after that, Yama decides.
 */
#include "proc/access.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <unistd.h>

#include "proc/host.h"
#include "proc/status.h"

/* False if one of the target's user ids is not ours; ret_uid is then that one. */
static bool access_same_user(pid_t pid, unsigned long *ret_uid)
{
	struct proc_status status;

	if (proc_status_read(pid, &status, NULL) < 0)
		return true;
	for (size_t i = 0; i < 3; i++) {
		*ret_uid = (uid_t[]){status.uid, status.euid, status.suid}[i];
		if (*ret_uid != geteuid())
			return false;
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
