/* src/java/attach/attach.c: see attach.h. */
#include "java/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "java/attach/patience.h"
#include "java/attach/state.h"
#include "java/attach/wire.h"
#include "proc/aide/rights.h"
#include "proc/text.h"

void java_attach_close(struct java_attach *a)
{
	if (!a)
		return;
	closep(&a->tmp);
	free(a);
}

const struct java_vm *java_attach_vm(const struct java_attach *a)
{
	return &a->vm;
}

int java_attach_tmp(const struct java_attach *a)
{
	return a->tmp;
}

static void trigger_name(const struct java_target *t, char *dst, size_t cap)
{
	(void)snprintf(dst, cap, ".attach_pid%d", (int)t->status.inner_pid);
}

/*
 * Creates the file that tells the JVM what the signal means; the JVM's user must own it. If it
 * exists, another tool is attaching right now: returns 0, and we must not remove it.
 */
static int trigger_make(const struct java_attach *a, struct err *err)
{
	struct proc_rights *own;
	struct stat st;
	char name[32];
	int r, fd;

	trigger_name(&a->target, name, sizeof(name));
	r = proc_rights_take(&a->target.status, &own);
	if (r == 0) {
		fd = openat(a->tmp, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		r = fd < 0 ? -errno : 0;
		proc_rights_return(own);
		closep(&fd);
	}
	if (r == 0)
		return 1;
	if (r == -EEXIST && fstatat(a->tmp, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISREG(st.st_mode) && st.st_uid == a->target.status.fsuid
			       ? 0
			       : err_set(err, -EPERM, "process %d: its /tmp/%s is not its own file",
					 (int)a->target.id.pid, name);
	return err_set(err, r, "process %d: cannot create %s in its /tmp: %s",
		       (int)a->target.id.pid, name, strerror(-r));
}

/* With its rights: in a directory that is not its own it could not do that either. */
static void trigger_remove(const struct java_target *t, int tmp)
{
	struct proc_rights *own;
	char name[32];

	trigger_name(t, name, sizeof(name));
	if (proc_rights_take(&t->status, &own) < 0)
		return;
	(void)unlinkat(tmp, name, 0);
	proc_rights_return(own);
}

/* Through a pidfd, which cannot refer to another process. */
static int trigger_signal(struct java_attach *a, struct err *err)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, a->target.id.pid, 0);
	struct proc_id id = a->target.id;
	int r;

	if (pidfd < 0)
		return err_set(err, -errno, "cannot signal process %d: %s", (int)id.pid,
			       strerror(errno));
	/* Check again at the last moment: an exec removes the signal handler. */
	r = java_target_read(&id, &a->target, err);
	if (r == 0)
		r = java_attach_check(a, err);
	if (r < 0)
		return r;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGQUIT, NULL, 0) < 0)
		return err_set(err, errno == ESRCH ? -ESRCH : -EPERM,
			       "cannot signal process %d: %s", (int)id.pid, strerror(errno));
	return 0;
}

/* Usually within 60 ms. */
static int trigger_wait(const struct java_attach *a, uint64_t deadline_ns, struct err *err)
{
	uint64_t pause_ns = 5 * NS_PER_MS;
	_cleanup_close_ int fd = -1;

	for (;;) {
		int r = java_attach_connect(a, deadline_ns, &fd, err);

		if (r != -ENOENT)
			return r;
		if (proc_id_gone(&a->target.id))
			return err_set(err, -ESRCH, "process %d has exited", (int)a->target.id.pid);
		r = java_patience_check(deadline_ns);
		if (r < 0)
			return err_set(err, r, "the JVM of process %d did not open its attach %s",
				       (int)a->target.id.pid,
				       r == -EINTR ? "socket until the interrupt" : "socket");
		clock_sleep_ns(pause_ns);
		pause_ns = MIN(pause_ns * 2, 100 * NS_PER_MS);
	}
}

static int attach_trigger(struct java_attach *a, uint64_t deadline_ns, struct err *err)
{
	int r, made;

	r = java_attach_check(a, err);
	if (r < 0)
		return r;
	made = trigger_make(a, err);
	if (made < 0)
		return made;
	r = trigger_signal(a, err);
	if (r == 0)
		r = trigger_wait(a, deadline_ns, err);
	if (made)
		trigger_remove(&a->target, a->tmp);
	return r;
}

/*
 * Connects once, so that a JVM already listening gets no signal. Anything else in place of its
 * socket is a refusal: the JVM could not create one there.
 */
static int attach_try(const struct java_attach *a, uint64_t deadline_ns, struct err *err)
{
	_cleanup_close_ int fd = -1;

	return java_attach_connect(a, deadline_ns, &fd, err);
}

int java_attach_open(const struct proc_id *id, uint64_t timeout_ns, struct java_attach **ret_attach,
		     struct err *err)
{
	_cleanup_(java_attach_closep) struct java_attach *a = calloc(1, sizeof(*a));
	uint64_t deadline_ns;
	int r;

	if (!a)
		return err_oom(err);
	a->tmp = -1;
	a->timeout_ns = timeout_ns ? timeout_ns : JAVA_ATTACH_TIMEOUT_NS;
	deadline_ns = java_patience_begin(a->timeout_ns);
	r = java_target_read(id, &a->target, err);
	if (r == 0)
		r = java_detect_pid(id->pid, &a->vm, err);
	if (r < 0)
		return r;
	if (r == 0 || a->vm.kind != JAVA_HOTSPOT)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_JAVA, "",
				"process %d is not a HotSpot JVM", (int)id->pid);
	r = java_target_open_tmp(&a->target, &a->tmp, err);
	if (r < 0)
		return r;
	r = attach_try(a, deadline_ns, err);
	if (r == -ENOENT)
		r = attach_trigger(a, deadline_ns, err);
	if (r < 0)
		return r;
	*ret_attach = TAKE_PTR(a);
	return 0;
}

void java_attach_clean(const struct proc_id *id)
{
	_cleanup_close_ int tmp = -1;
	struct java_target target;
	struct stat st;
	char name[32];

	if (java_target_read(id, &target, NULL) < 0 ||
	    java_target_open_tmp(&target, &tmp, NULL) < 0)
		return;
	trigger_name(&target, name, sizeof(name));
	if (fstatat(tmp, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size == 0)
		trigger_remove(&target, tmp);
}

/* One request and its answer; keeps only the answer's text. */
static int attach_ask(struct java_attach *a, unsigned int version, const char *operation,
		      const char *arg, struct buf *answer, struct err *err)
{
	_cleanup_(buf_release) struct buf request = buf_with_max(2 * JAVA_WIRE_ARG_MAX);
	uint64_t deadline_ns = java_patience_begin(a->timeout_ns);
	_cleanup_close_ int fd = -1;
	char line[128];
	struct view text;
	int r, status;

	buf_clear(answer);
	r = java_wire_request(version, operation, arg, &request);
	if (r < 0)
		return err_set(err, r, "a command of %zu bytes is too long for the JVM",
			       strlen(arg));
	r = java_attach_dial(a, deadline_ns, &fd, err);
	if (r < 0)
		return r;
	r = java_wire_exchange(fd, buf_view(&request), deadline_ns, answer, err);
	if (r < 0)
		return err_prefix(err, r, "process %d", (int)a->target.id.pid);
	r = java_wire_parse(buf_view(answer), &status, &text);
	if (r < 0)
		return err_set(err, r, "process %d: invalid response from the JVM",
			       (int)a->target.id.pid);
	if (status != 0) {
		size_t n = 0;

		while (n < text.len && text.data[n] != '\n')
			n++;
		proc_text_copy(line, sizeof(line), view_of(text.data, n));
		return err_set(err, -EPROTO, "the JVM of process %d refused (%d): %s",
			       (int)a->target.id.pid, status, line);
	}
	memmove(answer->data, text.data, text.len);
	answer->len = text.len;
	return 0;
}

/* JVMs that know more than version 1 say so; others do not know the request. */
static int attach_negotiate(struct java_attach *a, struct err *err)
{
	_cleanup_(buf_release) struct buf answer = buf_with_max((size_t)64 << 10);
	int r;

	if (a->version)
		return 0;
	r = attach_ask(a, 1, "getversion", "options", &answer, err);
	if (r < 0 && r != -EPROTO)
		return r;
	a->version = r == 0 && answer.len && answer.data[0] == '2' ? 2 : 1;
	return 0;
}

int java_attach_jcmd(struct java_attach *a, const char *command, struct buf *answer,
		     struct err *err)
{
	unsigned int version = 1;
	int r;

	if (!answer->max)
		answer->max = JAVA_ATTACH_ANSWER_MAX;
	if (strlen(command) > JAVA_WIRE_V1_ARG_MAX) {
		r = attach_negotiate(a, err);
		if (r < 0)
			return r;
		version = a->version;
	}
	return attach_ask(a, version, "jcmd", command, answer, err);
}
