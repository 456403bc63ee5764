/* src/proc/info.c: see info.h. */
#include "proc/info.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/aide/aides.h"
#include "proc/cmdline.h"
#include "proc/ns.h"
#include "proc/stat.h"
#include "proc/status.h"
#include "proc/text.h"

#define INFO_ENVIRON_MAX ((size_t)128 << 10)
#define INFO_CGROUP_MAX ((size_t)64 << 10)
#define INFO_MOUNTS_MAX ((size_t)256 << 10)
#define INFO_PIDS_MAX ((size_t)4 << 20) /* the kernel's own limit on pids */

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static bool info_was_read(struct proc_info *info, int code)
{
	if (code == -ETIMEDOUT || code == -EBUSY)
		info->no_answer = true;
	return code == 0 || code == -E2BIG;
}

static void info_read_exe(struct proc_info *info)
{
	static const char deleted[] = " (deleted)";
	size_t n_deleted = sizeof(deleted) - 1;
	_cleanup_(buf_release) struct buf path = buf_with_max(PATH_MAX);
	size_t n;

	if (!info_was_read(info, proc_aides_read_link(info->id.pid, "exe", &path)) || !path.len)
		return;
	n = path.len;
	if (n > n_deleted && memcmp(path.data + n - n_deleted, deleted, n_deleted) == 0)
		n -= n_deleted;
	/* The end of a path is more useful than its start. */
	if (n >= sizeof(info->exe)) {
		size_t keep = sizeof(info->exe) - 1;

		memcpy(path.data + n - keep, "...", 3);
		memmove(path.data, path.data + n - keep, keep);
		n = keep;
	}
	proc_text_copy(info->exe, sizeof(info->exe), view_of(path.data, n));
}

/* Appends up to buf's maximum and ignores the rest. False if unreadable. */
static bool info_read_file(struct proc_info *info, const char *name, struct buf *buf)
{
	return info_was_read(info, proc_aides_read(info->id.pid, name, buf));
}

static void info_read_cgroup(struct proc_info *info)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(INFO_CGROUP_MAX);
	const char *s = NULL;

	if (info_read_file(info, "cgroup", &text))
		s = buf_cstr(&text);
	if (s)
		proc_info_parse_cgroup(info, s);
}

/* In a user namespace of its own a process mounts, and so says, what it likes. */
static bool info_shares_users(const struct proc_info *info)
{
	uint64_t theirs, ours;

	return proc_ns_read(info->id.pid, "user", &theirs) == 0 &&
	       proc_ns_read(getpid(), "user", &ours) == 0 && theirs == ours;
}

static void info_read_mounts(struct proc_info *info)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(INFO_MOUNTS_MAX);
	const char *s = NULL;

	if (info_shares_users(info) && info_read_file(info, "mountinfo", &text))
		s = buf_cstr(&text);
	if (s)
		proc_info_parse_mounts(info, s);
}

/* The value of the variable, as getenv() would return; empty if there is none. */
static struct view env_get(struct view env, const char *name)
{
	size_t n = strlen(name);
	struct view var;

	for (size_t at = 0; view_cstr(env, at, &var); at += var.len + 1) {
		if (var.len > n && var.data[n] == '=' && view_starts_with(var, name))
			return view_of(var.data + n + 1, var.len - n - 1);
	}
	return view_of(NULL, 0);
}

static struct view text_trim(struct view v)
{
	while (v.len && (v.data[0] == ' ' || v.data[0] == '\t')) {
		v.data++;
		v.len--;
	}
	while (v.len && (v.data[v.len - 1] == ' ' || v.data[v.len - 1] == '\t'))
		v.len--;
	return v;
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX into at most cap bytes. Returns the length. */
static size_t percent_decode(struct view v, uint8_t *dst, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < v.len && n < cap; i++) {
		uint8_t c = v.data[i];

		if (c == '%' && i + 2 < v.len && hex_digit(v.data[i + 1]) >= 0 &&
		    hex_digit(v.data[i + 2]) >= 0) {
			c = (uint8_t)(hex_digit(v.data[i + 1]) << 4 | hex_digit(v.data[i + 2]));
			i += 2;
		}
		dst[n++] = c;
	}
	return n;
}

/* The value of a key in "key=value,key=value", still percent-encoded; the last one wins. */
static struct view attribute_get(struct view attrs, const char *key)
{
	struct view found = {0};

	while (attrs.len) {
		const uint8_t *comma = memchr(attrs.data, ',', attrs.len);
		size_t n = comma ? (size_t)(comma - attrs.data) : attrs.len;
		const uint8_t *equal = memchr(attrs.data, '=', n);

		if (equal) {
			size_t k = (size_t)(equal - attrs.data);

			if (view_eq(text_trim(view_of(attrs.data, k)), view_str(key)))
				found = text_trim(view_of(equal + 1, n - k - 1));
		}
		n += comma ? 1 : 0;
		attrs = view_of(attrs.data + n, attrs.len - n);
	}
	return found;
}

/* dst has room for cap bytes; unchanged if there is no such attribute. */
static void attribute_copy(char *dst, size_t cap, struct view attrs, const char *key)
{
	uint8_t decoded[256];
	size_t n = percent_decode(attribute_get(attrs, key), decoded, MIN(cap, sizeof(decoded)));

	if (n)
		proc_text_copy(dst, cap, view_of(decoded, n));
}

void proc_info_parse_environ(struct proc_info *info, struct view env)
{
	struct view attrs = env_get(env, "OTEL_RESOURCE_ATTRIBUTES");
	struct view name = text_trim(env_get(env, "OTEL_SERVICE_NAME"));

	if (name.len)
		proc_text_copy(info->service, sizeof(info->service), name);
	else
		attribute_copy(info->service, sizeof(info->service), attrs, "service.name");
	attribute_copy(info->namespace, sizeof(info->namespace), attrs, "service.namespace");
	attribute_copy(info->version, sizeof(info->version), attrs, "service.version");
	info->opted_out = view_eq(env_get(env, "SONDE_PROFILING"), view_str("disabled"));
	info->java_off = view_eq(env_get(env, "SONDE_JAVA"), view_str("off"));
}

static void info_read_environ(struct proc_info *info)
{
	_cleanup_(buf_release) struct buf env = buf_with_max(INFO_ENVIRON_MAX);

	if (info_read_file(info, "environ", &env))
		proc_info_parse_environ(info, buf_view(&env));
}

/* Where it runs matters only for what it runs by a name without a directory. */
static void info_read_cwd(struct proc_info *info, struct buf *path)
{
	if (!info_was_read(info, proc_aides_read_link(info->id.pid, "cwd", path)))
		path->len = 0;
}

static void info_read_cmdline(struct proc_info *info)
{
	_cleanup_(buf_release) struct buf args = buf_with_max(PROC_CMDLINE_MAX),
					  cwd = buf_with_max(PATH_MAX);
	struct proc_cmdline found;
	const char *dir;

	if (!info_read_file(info, "cmdline", &args))
		return;
	proc_cmdline_text(buf_view(&args), info->command, sizeof(info->command));
	if (!proc_cmdline_find(buf_view(&args), info->exe, &found))
		return;
	if (proc_cmdline_needs_cwd(&found))
		info_read_cwd(info, &cwd);
	dir = buf_cstr(&cwd);
	proc_cmdline_name(&found, dir ? dir : "", info->program, sizeof(info->program));
}

static int info_read(pid_t pid, bool with_memory, struct proc_info *ret_info, struct err *err)
{
	struct proc_info info = {0};
	struct proc_status status;
	struct proc_stat st;
	int r = proc_stat_read_alive(pid, &st, err);

	if (r < 0)
		return r;
	info.id = (struct proc_id){.pid = pid, .start_ticks = st.start_ticks};
	memcpy(info.comm, st.comm, sizeof(info.comm));
	info.kernel_thread = st.kernel_thread;
	info.exec_image = st.image;
	info.parent = st.parent;
	info.uid = proc_status_read(pid, &status, NULL) == 0 ? status.uid : PROC_UID_UNKNOWN;
	if (!info.kernel_thread) {
		info_read_exe(&info);
		info_read_cgroup(&info);
		if (info.container[0] && info.workload[0])
			info_read_mounts(&info);
		if (with_memory)
			info_read_environ(&info);
		if (with_memory && !info.no_answer)
			info_read_cmdline(&info);
	}
	proc_info_name_service(&info);
	/* All of this was read by pid: it is consistent only if the pid was not reused. */
	r = proc_id_check(&info.id, NULL);
	if (r == -ETIMEDOUT)
		return err_lack(err, r, ERR_CAUSE_NO_ANSWER, "",
				"process %d (%s) is not responding", (int)pid, st.comm);
	if (r < 0)
		return err_set(err, -ESRCH, "process %d (%s) has exited", (int)pid, st.comm);
	*ret_info = info;
	return 0;
}

int proc_info_read(pid_t pid, struct proc_info *ret_info, struct err *err)
{
	return info_read(pid, true, ret_info, err);
}

int proc_info_read_shallow(pid_t pid, struct proc_info *ret_info, struct err *err)
{
	return info_read(pid, false, ret_info, err);
}

/* Files that nobody waits for, whatever the process does. */
int proc_info_read_silent(pid_t pid, struct proc_info *ret_info)
{
	_cleanup_(buf_release) struct buf comm = buf_with_max(64),
					  cgroup = buf_with_max(INFO_CGROUP_MAX);
	struct proc_info info = {.id.pid = pid, .no_answer = true};
	struct proc_status status;
	char path[48];
	int r = proc_status_read(pid, &status, NULL);

	if (r < 0)
		return r;
	info.uid = status.uid;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (io_read_file(AT_FDCWD, path, &comm, NULL) == 0 && comm.len)
		proc_text_copy(info.comm, sizeof(info.comm), view_of(comm.data, comm.len - 1));
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (io_read_file(AT_FDCWD, path, &cgroup, NULL) == 0 && buf_cstr(&cgroup))
		proc_info_parse_cgroup(&info, buf_cstr(&cgroup));
	proc_info_name_service(&info);
	*ret_info = info;
	return 0;
}

static int pid_compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

/* The name as a number, or 0 if it is not one. */
static pid_t pid_of_name(const char *name)
{
	char *end;
	long pid;

	if (name[0] < '1' || name[0] > '9')
		return 0;
	pid = strtol(name, &end, 10);
	return *end == 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

int proc_list(pid_t **ret_pids, size_t *ret_len, struct err *err)
{
	_cleanup_(closedirp) DIR *dir = opendir("/proc");
	_cleanup_(buf_release) struct buf pids = buf_with_max(INFO_PIDS_MAX * sizeof(pid_t));
	const struct dirent *entry;

	if (!dir)
		return err_set(err, -errno, "cannot open /proc: %s", strerror(errno));
	while ((entry = readdir(dir))) {
		pid_t pid = pid_of_name(entry->d_name);

		if (pid && buf_append(&pids, &pid, sizeof(pid)) < 0)
			return err_oom(err);
	}
	if (pids.len)
		qsort(pids.data, pids.len / sizeof(pid_t), sizeof(pid_t), pid_compare);
	*ret_len = pids.len / sizeof(pid_t);
	*ret_pids = (pid_t *)(void *)TAKE_PTR(pids.data);
	return 0;
}
