/* src/java/recorder/mount.c: see mount.h. */
#include "java/recorder/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/aide/aides.h"
#include "proc/aide/rights.h"
#include "proc/host.h"
#include "proc/info.h"
#include "proc/ns.h"

/* Work inside a mount namespace, done by a separate thread. */
struct mount_job {
	int ns;
	int (*run)(struct mount_job *job);
	int parent; /* the target's /tmp */
	const char *name;
	int tree; /* to put on name */
	int on;	  /* the directory name */
	int result;
};

/* After unshare(CLONE_FS) the thread has its own root and working directory. */
static void *mount_thread(void *arg)
{
	struct mount_job *job = arg;

	if (unshare(CLONE_FS) < 0 || setns(job->ns, CLONE_NEWNS) < 0)
		job->result = -errno;
	else
		job->result = job->run(job);
	return NULL;
}

static int mount_run(struct mount_job *job)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, mount_thread, job);

	if (r)
		return -r;
	(void)pthread_join(thread, NULL);
	return job->result;
}

static int mount_open_ns(pid_t pid)
{
	int fd, r = proc_aides_open(pid, "ns/mnt", O_RDONLY, &fd);

	return r < 0 ? r : fd;
}

static int tmpfs_option(int fs, const char *key, const char *fmt, unsigned long long value)
{
	char text[32];

	/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral) */
	(void)snprintf(text, sizeof(text), fmt, value);
	return fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0) < 0 ? -errno : 0;
}

/* Creates a tmpfs, not mounted yet. */
static int tmpfs_make(const struct java_target *t, int *ret_tree)
{
	_cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int r, tree;

	if (fs < 0)
		return -errno;
	r = fsconfig(fs, FSCONFIG_SET_STRING, "source", "sonde", 0) < 0 ? -errno : 0;
	if (r == 0)
		r = tmpfs_option(fs, "size", "%llu", JAVA_MOUNT_BYTES);
	if (r == 0)
		r = tmpfs_option(fs, "nr_inodes", "%llu", 1024);
	if (r == 0)
		r = tmpfs_option(fs, "uid", "%llu", t->status.euid);
	if (r == 0)
		r = tmpfs_option(fs, "gid", "%llu", t->status.egid);
	if (r == 0)
		r = tmpfs_option(fs, "mode", "%llo", 0700);
	if (r == 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = -errno;
	if (r < 0)
		return r;
	tree = fsmount(fs, FSMOUNT_CLOEXEC,
		       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (tree < 0)
		return -errno;
	*ret_tree = tree;
	return 0;
}

int java_mount_add(int dirfd, const char *name, struct view contents)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	int r = fd < 0 ? -errno : io_write_full(fd, contents.data, contents.len);

	/* Regardless of our umask. */
	return r == 0 && fchmod(fd, 0644) < 0 ? -errno : r;
}

static int job_attach(struct mount_job *job)
{
	return move_mount(job->tree, "", job->on, "",
			  MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

/*
 * The new directory, made and opened with the target's rights. The target may put another one in
 * its place meanwhile, but only one of its own, and nothing that it has mounted.
 */
static int mount_make_dir(const struct java_target *t, int tmp, const char *name, int *ret_fd)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	_cleanup_close_ int fd = -1;
	struct proc_rights *own;
	struct stat st;
	int r = proc_rights_take(&t->status, &own);

	if (r < 0)
		return r;
	r = mkdirat(tmp, name, 0700) < 0 ? -errno : 0;
	if (r == 0) {
		fd = (int)syscall(SYS_openat2, tmp, name, &how, sizeof(how));
		if (fd < 0 || fstat(fd, &st) < 0)
			r = -errno;
		else if (st.st_uid != t->status.fsuid)
			r = -EPERM;
		if (r < 0)
			(void)unlinkat(tmp, name, AT_REMOVEDIR);
	}
	proc_rights_return(own);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

static int mount_attach(const struct java_target *t, int tmp, const char *name, int tree)
{
	_cleanup_close_ int ns = mount_open_ns(t->id.pid), on = -1;
	struct mount_job job = {.ns = ns, .run = job_attach, .tree = tree};
	int r;

	if (ns < 0)
		return ns;
	r = mount_make_dir(t, tmp, name, &on);
	if (r < 0)
		return r;
	job.on = on;
	r = mount_run(&job);
	if (r < 0)
		(void)unlinkat(tmp, name, AT_REMOVEDIR);
	return r;
}

int java_mount_check(struct err *err)
{
	_cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs >= 0)
		return 0;
	if (errno == ENOSYS)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_KERNEL, "use Linux 5.17 or later",
				"JVM recordings need fsopen(), which this kernel lacks");
	if (proc_host_is_user_namespace())
		return err_lack(err, -EPERM, ERR_CAUSE_USER_NAMESPACE,
				"run as root on the host, not in a rootless container",
				"JVM recordings need a private tmpfs, which root in a user "
				"namespace cannot mount");
	return err_lack(
		err, -EPERM, ERR_CAUSE_PRIVILEGE,
		geteuid() == 0 ? "run the container with --privileged" : "run as root",
		"JVM recordings need a private tmpfs, and mounting one needs CAP_SYS_ADMIN");
}

int java_mount_make(const struct java_target *t, const char *name, struct view settings,
		    int *ret_dirfd, struct err *err)
{
	_cleanup_close_ int tmp = -1, tree = -1, dirfd = -1;
	int r;

	r = java_target_open_tmp(t, &tmp, err);
	if (r < 0)
		return r;
	r = tmpfs_make(t, &tree);
	if (r == 0) {
		dirfd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Before anyone else can see the directory. */
		r = dirfd < 0 ? -errno : java_mount_add(dirfd, JAVA_MOUNT_SETTINGS, settings);
	}
	if (r == 0)
		r = mount_attach(t, tmp, name, tree);
	if (r == -EPERM || r == -EACCES)
		return err_lack(err, -EPERM, ERR_CAUSE_PRIVILEGE, "run as root",
				"not enough permissions to mount a tmpfs for process %d",
				(int)t->id.pid);
	if (r < 0)
		return err_set(err, r, "cannot mount a tmpfs for the recordings of process %d: %s",
			       (int)t->id.pid, strerror(-r));
	*ret_dirfd = TAKE_FD(dirfd);
	return 0;
}

/* Uses a name relative to the working directory, as there may be no /proc. */
static int job_detach(struct mount_job *job)
{
	if (fchdir(job->parent) < 0)
		return -errno;
	return umount2(job->name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

static bool in_namespace(pid_t pid, uint64_t mount_ns)
{
	uint64_t its;

	return proc_ns_read(pid, "mnt", &its) == 0 && its == mount_ns;
}

/* The path of the mount in that process's mount list; "/tmp/NAME" if it is not listed. */
static void find_mount_point(pid_t pid, const char *name, char *dst, size_t cap)
{
	_cleanup_(buf_release) struct buf text = buf_with_max((size_t)8 << 20);
	char path[48], needle[96];
	const char *s = NULL, *at, *begin;

	(void)snprintf(dst, cap, "/tmp/%s", name);
	(void)snprintf(needle, sizeof(needle), "/%s ", name);
	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	if (io_read_file(AT_FDCWD, path, &text, NULL) == 0)
		s = buf_cstr(&text);
	at = s ? strstr(s, needle) : NULL;
	if (!at)
		return;
	begin = at;
	while (begin > s && begin[-1] != ' ')
		begin--;
	/* Escapes are not decoded: such a path is simply not found. */
	if ((size_t)(at - begin) + strlen(needle) < cap)
		(void)snprintf(dst, cap, "%.*s", (int)((size_t)(at - begin) + strlen(needle) - 1),
			       begin);
}

static int remove_through(pid_t pid, const char *name)
{
	_cleanup_close_ int ns = mount_open_ns(pid), parent = -1;
	struct mount_job job = {.ns = ns, .run = job_detach, .name = name};
	char path[1024];
	struct stat st;
	int r;

	if (ns < 0)
		return ns;
	find_mount_point(pid, name, path, sizeof(path));
	*strrchr(path, '/') = 0;
	r = java_target_open_path(pid, path[0] ? path : "/", &parent);
	if (r < 0)
		return r;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	job.parent = parent;
	r = mount_run(&job);
	/* Not mounted. */
	if (r < 0 && r != -EINVAL)
		return r;
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

static pid_t find_in_namespace(uint64_t mount_ns)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t len;

	if (proc_list(&pids, &len, NULL) < 0)
		return 0;
	for (size_t i = 0; i < len; i++)
		if (in_namespace(pids[i], mount_ns))
			return pids[i];
	return 0;
}

int java_mount_remove(uint64_t mount_ns, pid_t pid, const char *name, struct err *err)
{
	int r;

	if (!in_namespace(pid, mount_ns))
		pid = find_in_namespace(mount_ns);
	/* An empty namespace is gone, along with its mounts. */
	if (pid == 0)
		return 0;
	r = remove_through(pid, name);
	if (r < 0)
		return err_set(err, r, "cannot remove %s from the /tmp of process %d: %s", name,
			       (int)pid, strerror(-r));
	return 0;
}
