/* src/oom/mounts.c: see mounts.h. */
#include "oom/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "proc/host.h"

#define MOUNTS_MAX_TEXT ((size_t)4 << 20)

bool oom_has_word(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t at = 0; at < len;) {
		size_t end = at;

		while (end < len && list[end] != ',')
			end++;
		if (end - at == n && memcmp(list + at, word, n) == 0)
			return true;
		at = end + 1;
	}
	return false;
}

/* Another file system may be mounted over it, or over a parent. */
static bool is_there(const char *dir, long magic)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 && fs.f_type == magic;
}

/* The root group is "": paths start with a slash. magic 0: do not verify. */
static void mount_set(struct oom_mount *m, const char *root, const char *dir, long magic)
{
	size_t n = strlen(root);

	if (m->dir[0] || n >= sizeof(m->root) || strlen(dir) >= sizeof(m->dir) ||
	    strchr(root, '\\') || strchr(dir, '\\') || (magic && !is_there(dir, magic)))
		return;
	(void)snprintf(m->dir, sizeof(m->dir), "%s", dir);
	(void)snprintf(m->root, sizeof(m->root), "%s", strcmp(root, "/") == 0 ? "" : root);
}

/* "36 35 98:0 ROOT DIR rw,noatime shared:1 - TYPE SOURCE OPTIONS" */
static void mounts_line(char *line, bool verify, struct oom_mounts *m)
{
	char *fields[5] = {0}, *rest = strstr(line, " - "), *save = NULL;
	char *type, *options;

	if (!rest)
		return;
	*rest = 0;
	fields[0] = strtok_r(line, " ", &save);
	for (size_t i = 1; i < ARRAY_SIZE(fields) && fields[i - 1]; i++)
		fields[i] = strtok_r(NULL, " ", &save);
	type = strtok_r(rest + 3, " ", &save);
	options = type ? strtok_r(NULL, " ", &save) : NULL;
	options = options ? strtok_r(NULL, " ", &save) : NULL;
	if (!fields[4] || !options)
		return;
	if (strcmp(type, "cgroup2") == 0)
		mount_set(&m->v2, fields[3], fields[4], verify ? CGROUP2_SUPER_MAGIC : 0);
	else if (strcmp(type, "cgroup") == 0 && oom_has_word(options, strlen(options), "memory"))
		mount_set(&m->v1, fields[3], fields[4], verify ? CGROUP_SUPER_MAGIC : 0);
}

void oom_mounts_parse(const char *text, bool verify, struct oom_mounts *ret_mounts)
{
	*ret_mounts = (struct oom_mounts){};
	while (*text) {
		size_t n = strcspn(text, "\n");
		char line[4 * OOM_PATH_MAX];

		if (n < sizeof(line)) {
			memcpy(line, text, n);
			line[n] = 0;
			mounts_line(line, verify, ret_mounts);
		}
		text += n + (text[n] == '\n');
	}
}

static const char *read_text(const char *path, struct buf *text)
{
	const char *s;

	*text = buf_with_max(MOUNTS_MAX_TEXT);
	if (io_read_file(AT_FDCWD, path, text, NULL) < 0)
		return "";
	s = buf_cstr(text);
	return s ? s : "";
}

/* The root group of version 2 has no limit, but lists its controllers. */
static bool v2_has_memory(const struct oom_mount *m)
{
	_cleanup_(buf_release) struct buf text = {};
	char path[OOM_PATH_MAX + 32];
	const char *words;

	(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", m->dir);
	words = m->dir[0] ? read_text(path, &text) : "";
	for (const char *at = words; (at = strstr(at, "memory")); at++)
		if ((at == words || at[-1] == ' ') && strchr(" \n", at[6]))
			return true;
	return false;
}

/* Version 1 takes controllers away from version 2, so use one only if already taken. */
static int mount_detached(const char *type, const char *option, struct oom_mount *m)
{
	_cleanup_close_ int fs = fsopen(type, FSOPEN_CLOEXEC), tree = -1;

	if (fs < 0 || (option && fsconfig(fs, FSCONFIG_SET_FLAG, option, NULL, 0) < 0) ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = fsmount(fs, FSMOUNT_CLOEXEC,
		       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			       MOUNT_ATTR_NOEXEC);
	if (tree < 0)
		return -errno;
	(void)snprintf(m->dir, sizeof(m->dir), "/proc/self/fd/%d", tree);
	m->root[0] = 0;
	m->is_ours = true;
	m->fd = TAKE_FD(tree);
	return 0;
}

/* "memory 4 50 1": its hierarchy, 0 in version 2; how many groups; whether it is enabled. */
static bool memory_is_v1(void)
{
	_cleanup_(buf_release) struct buf text = {};
	const char *line = strstr(read_text("/proc/cgroups", &text), "\nmemory\t");

	return line && strtoul(line + strlen("\nmemory\t"), NULL, 10) != 0;
}

/* In the version that has the memory controller, where the limits are. */
static int mount_own(struct oom_mounts *m, struct err *err)
{
	bool v1 = memory_is_v1();
	int r = 0;

	if (v1)
		r = mount_detached("cgroup", "memory", &m->v1);
	else if (!m->v2.dir[0])
		r = mount_detached("cgroup2", NULL, &m->v2);
	if (r < 0)
		return err_lack(
			err, -ENOENT, ERR_CAUSE_NOT_MOUNTED,
			v1 ? "mount -t cgroup -o memory cgroup /sys/fs/cgroup"
			   : "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
			"memory cgroups are not mounted, and a private mount needs CAP_SYS_ADMIN");
	if (v1 || v2_has_memory(&m->v2))
		return 0;
	oom_mounts_close(m);
	return err_lack(err, -ENOTSUP, ERR_CAUSE_KERNEL,
			"boot the kernel with cgroup_enable=memory",
			"the kernel's memory controller is disabled");
}

int oom_mounts_open(struct oom_mounts *ret_mounts, struct err *err)
{
	_cleanup_(buf_release) struct buf text = {};
	struct oom_mounts m;
	int r = proc_host_check_proc(err);

	if (r < 0)
		return r;
	oom_mounts_parse(read_text("/proc/self/mountinfo", &text), true, &m);
	if (!m.v1.dir[0] && !v2_has_memory(&m.v2))
		r = mount_own(&m, err);
	if (r < 0)
		return r;
	*ret_mounts = m;
	return 0;
}

void oom_mounts_close(struct oom_mounts *m)
{
	if (m->v1.is_ours)
		closep(&m->v1.fd);
	if (m->v2.is_ours)
		closep(&m->v2.fd);
	*m = (struct oom_mounts){};
}
