/* src/java/attach/target.c: see target.h. */
#include "java/attach/target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/io.h"

#define TARGET_STATUS_MAX ((size_t)64 << 10)
#define TARGET_WORDS_MAX ((size_t)128 << 10)

/*
 * The text after "name:\t" at the start of a line. Search with the preceding newline, because the
 * target chose the name in the first line.
 */
static const char *status_field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

/* The n-th number (from 0) of a field; the last one if there are fewer. */
static bool status_number(const char *text, const char *name, int base, size_t n,
			  uint64_t *ret_number)
{
	const char *at = status_field(text, name);
	char *end;

	if (!at || *at == '\n')
		return false;
	for (;;) {
		errno = 0;
		*ret_number = strtoull(at, &end, base);
		if (errno || end == at)
			return false;
		if (n-- == 0 || *end != '\t')
			return true;
		at = end + 1;
	}
}

int java_target_parse(const char *text, struct java_target *ret_target)
{
	const char *state = status_field(text, "\nState:\t");
	uint64_t uid, gid, inner, caught;

	if (!state || !status_number(text, "\nUid:\t", 10, 1, &uid) ||
	    !status_number(text, "\nGid:\t", 10, 1, &gid) ||
	    !status_number(text, "\nNSpid:\t", 10, SIZE_MAX, &inner) ||
	    !status_number(text, "\nSigCgt:\t", 16, 0, &caught))
		return -EBADMSG;
	if (uid > UINT32_MAX || gid > UINT32_MAX || inner == 0 || inner > INT32_MAX)
		return -EBADMSG;
	ret_target->inner_pid = (pid_t)inner;
	ret_target->euid = (uid_t)uid;
	ret_target->egid = (gid_t)gid;
	ret_target->caught = caught;
	ret_target->state = *state;
	return 0;
}

int java_target_read(const struct proc_id *id, struct java_target *ret_target, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(TARGET_STATUS_MAX);
	struct java_target target = {.id = *id};
	const char *s = NULL;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)id->pid);
	if (io_read_file(AT_FDCWD, path, &text, NULL) == 0)
		s = buf_cstr(&text);
	if (!s || !proc_id_alive(id))
		return err_set(err, -ESRCH, "process %d has exited", (int)id->pid);
	if (java_target_parse(s, &target) < 0)
		return err_set(err, -EBADMSG, "process %d: cannot parse /proc/%d/status",
			       (int)id->pid, (int)id->pid);
	*ret_target = target;
	return 0;
}

int java_target_open_path(pid_t pid, const char *path, uint64_t flags, int *ret_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int root = -1;
	char link[48];
	int fd;

	(void)snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int java_target_open_tmp(const struct java_target *target, int *ret_fd, struct err *err)
{
	int pid = (int)target->id.pid, fd = -1;
	int r = java_target_open_path(pid, "/tmp", O_DIRECTORY, &fd);

	if (r == 0 && !proc_id_alive(&target->id)) {
		closep(&fd);
		r = -ESRCH;
	}
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
	char path[64];
	int r;

	*words = buf_with_max(TARGET_WORDS_MAX);
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	r = io_read_file(AT_FDCWD, path, words, NULL);
	if (r < 0 && r != -E2BIG)
		buf_clear(words);
}

bool java_target_has_word(const struct buf *words, const char *text)
{
	return words->len && memmem(words->data, words->len, text, strlen(text));
}
