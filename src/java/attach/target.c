/* src/java/attach/target.c: see target.h. */
#include "java/attach/target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "proc/aide/aides.h"
#include "proc/aide/rights.h"

#define TARGET_WORDS_MAX ((size_t)128 << 10)

int java_target_read(const struct proc_id *id, struct java_target *ret_target, struct err *err)
{
	struct java_target target = {.id = *id};
	int r = proc_status_read(id->pid, &target.status, err);

	if (r == 0)
		r = proc_id_check(id, err);
	if (r < 0)
		return r;
	*ret_target = target;
	return 0;
}

int java_target_check_stopped(const struct java_target *target, struct err *err)
{
	if (target->status.state != 'T' && target->status.state != 't')
		return 0;
	return err_set(err, -EAGAIN, "process %d is stopped and cannot respond",
		       (int)target->id.pid);
}

static int open_root(pid_t pid)
{
	int fd, r = proc_aides_open(pid, "root", O_PATH | O_DIRECTORY, &fd);

	return r < 0 ? r : fd;
}

static int open_below(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int java_target_open_path(pid_t pid, const char *path, int *ret_fd)
{
	_cleanup_close_ int root = open_root(pid);
	int fd = root < 0 ? root : open_below(root, path);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* Our own rights lead to its root directory; from there on its rights apply. */
static int open_tmp(const struct java_target *target)
{
	_cleanup_close_ int root = open_root(target->id.pid);
	struct proc_rights *own;
	int fd, r;

	if (root < 0)
		return root;
	r = proc_rights_take(&target->status, &own);
	if (r < 0)
		return r;
	fd = open_below(root, "/tmp");
	proc_rights_return(own);
	return fd;
}

int java_target_open_tmp(const struct java_target *target, int *ret_fd, struct err *err)
{
	int pid = (int)target->id.pid, fd = open_tmp(target);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && (r = proc_id_check(&target->id, NULL)) < 0)
		closep(&fd);
	if (r == -ESRCH)
		return err_set(err, r, "process %d has exited", pid);
	if (r == -EACCES || r == -EPERM)
		return err_lack(err, -EPERM, ERR_CAUSE_DENIED, "run as root",
				"not enough permissions to access the root directory of process %d",
				pid);
	if (r < 0)
		return err_set(err, r, "process %d: cannot open its /tmp: %s", pid, strerror(-r));
	*ret_fd = fd;
	return 0;
}

void java_target_read_words(pid_t pid, const char *file, struct buf *words)
{
	int r;

	*words = buf_with_max(TARGET_WORDS_MAX);
	r = proc_aides_read(pid, file, words);
	if (r < 0 && r != -E2BIG)
		buf_clear(words);
}

bool java_target_has_word(const struct buf *words, const char *text)
{
	return words->len && memmem(words->data, words->len, text, strlen(text));
}
