/* src/bpf/kernel.c: see kernel.h. */
#include "bpf/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "proc/host.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"
#define BTF_MAGIC 0xEB9F
#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"

static int explain_btf(struct err *err)
{
	char dir[128], remedy[sizeof(dir) + 16];

	if (proc_host_is_covered(BTF_PATH, "/sys", dir, sizeof(dir))) {
		(void)snprintf(remedy, sizeof(remedy), "umount %s", dir);
		return err_lack(err, -ENOTSUP, ERR_CAUSE_HIDDEN, remedy,
				"the kernel's type information (BTF) is hidden by a mount on %s",
				dir);
	}
	if (access("/sys/kernel", F_OK) < 0)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_MOUNTED, "mount -t sysfs sysfs /sys",
				"the kernel's type information (BTF) is in /sys, which is not "
				"mounted");
	return err_lack(err, -ENOTSUP, ERR_CAUSE_NO_BTF,
			"use a kernel with CONFIG_DEBUG_INFO_BTF=y, as most distributions ship",
			"the kernel has no type information (BTF)");
}

int bpf_kernel_check_btf(struct err *err)
{
	_cleanup_close_ int fd = open(BTF_PATH, O_RDONLY | O_CLOEXEC);
	uint16_t magic = 0;

	if (fd >= 0 && io_pread_full(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
	    magic == BTF_MAGIC)
		return 0;
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_lack(err, -EPERM, ERR_CAUSE_PRIVILEGE, "run as root",
				"the kernel's type information (%s) cannot be read", BTF_PATH);
	return explain_btf(err);
}

/*
 * The message names what is missing; the remedy, how to get it. In a container, root may lack it.
 */
static int lack_caps(const char *call, struct err *err)
{
	bool bpf = proc_host_has_cap(CAP_BPF), perfmon = proc_host_has_cap(CAP_PERFMON);

	return err_lack(err, -EPERM, ERR_CAUSE_PRIVILEGE,
			geteuid() == 0
				? "run the container with --privileged, or with --cap-add=BPF "
				  "--cap-add=PERFMON --cap-add=SYS_PTRACE"
				: "run as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE "
				  "and CAP_DAC_READ_SEARCH",
			"%s needs %s%s%s", call, bpf ? "" : "CAP_BPF",
			bpf || perfmon ? "" : " and ", perfmon ? "" : "CAP_PERFMON");
}

static bool is_locked_down(void)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(4096);
	const char *modes;

	if (io_read_file(AT_FDCWD, LOCKDOWN_PATH, &text, NULL) < 0)
		return false;
	modes = buf_cstr(&text);
	return modes && strstr(modes, "[confidentiality]");
}

static int explain_refusal(const char *call, struct err *err)
{
	bool admin = proc_host_has_cap(CAP_SYS_ADMIN);

	if (!admin && !(proc_host_has_cap(CAP_BPF) && proc_host_has_cap(CAP_PERFMON)))
		return lack_caps(call, err);
	if (proc_host_is_user_namespace())
		return err_lack(err, -EPERM, ERR_CAUSE_USER_NAMESPACE,
				"run as root on the host, not in a rootless container",
				"%s is not permitted for root in a user namespace", call);
	if (is_locked_down())
		return err_lack(err, -EPERM, ERR_CAUSE_LOCKDOWN,
				"boot the kernel with lockdown=integrity",
				"%s is not permitted: the kernel is locked down "
				"(lockdown=confidentiality)",
				call);
	if (proc_host_is_filtered())
		return err_lack(err, -EPERM, ERR_CAUSE_SECCOMP,
				"run the container with --security-opt seccomp=unconfined",
				"%s is not permitted: a seccomp filter is in effect", call);
	return err_lack(
		err, -EPERM, ERR_CAUSE_OTHER, "check the SELinux or AppArmor log",
		"%s is not permitted despite CAP_BPF and CAP_PERFMON: a security module denies it",
		call);
}

int bpf_kernel_explain(const char *call, int code, struct err *err)
{
	struct utsname host = {0};

	if (code == -EPERM || code == -EACCES)
		return explain_refusal(call, err);
	(void)uname(&host);
	if (code == -ENOSYS && proc_host_is_filtered())
		return err_lack(err, -ENOTSUP, ERR_CAUSE_SECCOMP,
				"run the container with --security-opt seccomp=unconfined",
				"a seccomp filter hides %s", call);
	if (code == -ENOSYS)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_KERNEL,
				"use a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_PERF_EVENTS=y",
				"the kernel (%s) has no %s", host.release, call);
	return err_lack(err, -ENOTSUP, ERR_CAUSE_OTHER, "", "%s fails on this kernel (%s): %s",
			call, host.release, strerror(-code));
}
