/* src/proc/host.c: see host.h. */
#include "proc/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/caps.h"

/* The inode of the initial PID namespace, fixed in the kernel. */
#define INIT_PID_NAMESPACE 0xEFFFFFFCU
#define HOST_MAX_TEXT ((size_t)4 << 20)

/* The text, valid as long as the buffer; "" if unreadable. */
static const char *host_read(const char *path, struct buf *text)
{
	const char *s;

	*text = buf_with_max(HOST_MAX_TEXT);
	if (io_read_file(AT_FDCWD, path, text, NULL) < 0)
		return "";
	s = buf_cstr(text);
	return s ? s : "";
}

/* The number after "\nKey:" in our own status; 0 if missing. */
static uint64_t host_status(const char *key, int base)
{
	_cleanup_(buf_release) struct buf text = {};
	const char *at = strstr(host_read("/proc/thread-self/status", &text), key);

	return at ? strtoull(at + strlen(key), NULL, base) : 0;
}

bool proc_host_has_cap(unsigned int cap)
{
	return proc_caps_now() >> cap & 1;
}

bool proc_host_reads_all_files(void)
{
	return proc_host_has_cap(CAP_DAC_READ_SEARCH) || proc_host_has_cap(CAP_DAC_OVERRIDE);
}

/* What was mounted last lies on top: ID PARENT MAJOR:MINOR ROOT POINT ... - proc SOURCE OPTIONS */
bool proc_host_parse_hidepid(const char *mountinfo)
{
	bool hides = false;

	for (const char *line = mountinfo, *end; *line; line = end + (*end == '\n')) {
		size_t n = strcspn(line, "\n");
		const char *option, *value;

		end = line + n;
		if (!memmem(line, n, " / /proc ", 9) || !memmem(line, n, " - proc ", 8))
			continue;
		option = memmem(line, n, "hidepid=", 8);
		value = option ? option + 8 : "0";
		hides = strncmp(value, "0", 1) != 0 && strncmp(value, "off", 3) != 0;
	}
	return hides;
}

bool proc_host_hides_processes(void)
{
	_cleanup_(buf_release) struct buf text = {};

	return proc_host_parse_hidepid(host_read("/proc/self/mountinfo", &text));
}

bool proc_host_is_filtered(void)
{
	return host_status("\nSeccomp:", 10) == 2;
}

bool proc_host_has_own_pids(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == INIT_PID_NAMESPACE;
}

int proc_host_ptrace_scope(void)
{
	_cleanup_(buf_release) struct buf text = {};

	return (int)strtol(host_read("/proc/sys/kernel/yama/ptrace_scope", &text), NULL, 10);
}

/* "0 0 4294967295" in the initial one, which maps all ids to themselves. A new one maps none. */
bool proc_host_is_user_namespace(void)
{
	_cleanup_(buf_release) struct buf text = {};
	const char *map = host_read("/proc/self/uid_map", &text);
	char *at;

	if (access("/proc/self/uid_map", R_OK) < 0)
		return false;
	return strtoul(map, &at, 10) != 0 || strtoul(at, &at, 10) != 0 ||
	       strtoul(at, NULL, 10) != UINT32_MAX;
}

/* Whether dir is path or one of its parents. */
static bool is_above(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return strncmp(dir, path, n) == 0 && (path[n] == '/' || path[n] == 0);
}

/* The fifth word of each line is the mount point. */
bool proc_host_parse_cover(char *mountinfo, const char *path, const char *base, char *ret,
			   size_t cap)
{
	bool found = false;
	char *lines = NULL;

	for (char *line = strtok_r(mountinfo, "\n", &lines); line;
	     line = strtok_r(NULL, "\n", &lines)) {
		char *words = NULL, *dir = strtok_r(line, " ", &words);

		for (int i = 0; dir && i < 4; i++)
			dir = strtok_r(NULL, " ", &words);
		if (!dir || !is_above(dir, path) || strlen(dir) <= strlen(base))
			continue;
		(void)snprintf(ret, cap, "%s", dir);
		found = true;
	}
	return found;
}

bool proc_host_is_covered(const char *path, const char *base, char *ret, size_t cap)
{
	_cleanup_(buf_release) struct buf text = {};

	if (!host_read("/proc/self/mountinfo", &text)[0])
		return false;
	return proc_host_parse_cover((char *)text.data, path, base, ret, cap);
}

/* A child that only CAP_SYS_PTRACE can read, whatever its user. It exits when the pipe closes. */
static pid_t memory_child(int ends[2])
{
	pid_t pid = fork();
	char byte = 0;

	if (pid != 0)
		return pid;
	close(ends[0]);
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (write(ends[1], &byte, 1) == 1)
		(void)!read(ends[1], &byte, 1);
	_exit(0);
}

/* Opens its memory, like any other process's. */
static int memory_try(void)
{
	_cleanup_close_ int mem = -1, ours = -1;
	char path[48], byte;
	int ends[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ours = ends[0];
	pid = memory_child(ends);
	r = pid < 0 ? -errno : 0;
	close(ends[1]);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	if (read(ours, &byte, 1) == 1)
		mem = open(path, O_RDONLY | O_CLOEXEC);
	r = mem < 0 ? -errno : 0;
	(void)shutdown(ours, SHUT_RDWR);
	(void)waitpid(pid, NULL, 0);
	return r;
}

static int memory_explain(bool cap, int scope, struct err *err)
{
	if (scope >= 3)
		return err_lack(err, -EPERM, ERR_CAUSE_PTRACE_SCOPE,
				"set kernel.yama.ptrace_scope below 3 in /etc/sysctl.d, and reboot",
				"kernel.yama.ptrace_scope is 3: no process may read another's "
				"memory");
	if (cap && proc_host_is_user_namespace())
		return err_lack(err, -EPERM, ERR_CAUSE_USER_NAMESPACE,
				"run as root on the host, not in a rootless container",
				"root in a user namespace cannot read processes outside it");
	if (cap && !proc_host_reads_all_files())
		return err_lack(err, -EPERM, ERR_CAUSE_PRIVILEGE,
				geteuid() == 0 ? "run the container with --cap-add=DAC_READ_SEARCH"
					       : "run as root, or with CAP_SYS_PTRACE and "
						 "CAP_DAC_READ_SEARCH",
				"without CAP_DAC_READ_SEARCH, only processes of user %lu can be "
				"read",
				(unsigned long)geteuid());
	if (cap)
		return err_lack(err, -EPERM, ERR_CAUSE_OTHER, "check the SELinux or AppArmor log",
				"a security module denies access to other processes' memory");
	if (scope)
		return err_lack(err, -EPERM, ERR_CAUSE_PTRACE_SCOPE,
				"run as root, or: sysctl kernel.yama.ptrace_scope=0",
				"missing CAP_SYS_PTRACE, and kernel.yama.ptrace_scope is %d",
				scope);
	return err_lack(err, -EPERM, ERR_CAUSE_PRIVILEGE,
			geteuid() == 0 ? "run the container with --cap-add=SYS_PTRACE"
				       : "run as root, or with CAP_SYS_PTRACE and "
					 "CAP_DAC_READ_SEARCH",
			"without CAP_SYS_PTRACE, only processes of user %lu can be read",
			(unsigned long)geteuid());
}

int proc_host_check_memory(bool *ret_own, struct err *err)
{
	int scope = proc_host_ptrace_scope(), r = proc_host_check_proc(err);

	*ret_own = r == 0 && scope == 0;
	if (r < 0)
		return r;
	if (memory_try() == 0 && !proc_host_is_user_namespace() && proc_host_reads_all_files())
		return 0;
	return memory_explain(proc_host_has_cap(CAP_SYS_PTRACE), scope, err);
}

int proc_host_check_proc(struct err *err)
{
	if (access("/proc/self/status", R_OK) == 0)
		return 0;
	return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_MOUNTED, "mount -t proc proc /proc",
			"/proc is not mounted");
}

int proc_host_check_pids(struct err *err)
{
	int r = proc_host_check_proc(err);

	if (r < 0 || proc_host_has_own_pids())
		return r;
	return err_lack(err, -ENOTSUP, ERR_CAUSE_PID_NAMESPACE,
			"run the container with --pid=host (Kubernetes: hostPID: true)",
			"sonde runs in its own PID namespace and cannot see the host's processes");
}
