/* src/java/attach/connect.c: connects to a JVM's socket as the JVM's user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "java/attach/patience.h"
#include "java/attach/state.h"
#include "java/attach/user.h"

int java_attach_can_be(const struct java_target *t, struct err *err)
{
	struct java_user self;

	if (java_user_become(t, &self) < 0)
		return err_lack(err, -EPERM, ERR_CAUSE_DENIED, "run as root or as that user",
				"the JVM of process %d accepts only its own user %u",
				(int)t->id.pid, (unsigned int)t->status.euid);
	java_user_return(&self);
	return 0;
}

/* Opens the socket as an O_PATH descriptor, so that it cannot be swapped for a link. */
static int connect_find(const struct java_attach *a, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char name[32];
	struct stat st;

	(void)snprintf(name, sizeof(name), ".java_pid%d", (int)a->target.status.inner_pid);
	fd = openat(a->tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != a->target.status.euid)
		return -EPERM;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* connect() records our credentials, which the JVM checks. */
static int connect_as(const struct java_target *t, int fd, int found)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct java_user self;
	int r;

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "/proc/self/fd/%d", found);
	r = java_user_become(t, &self);
	if (r < 0)
		return r;
	r = connect(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ? -errno : 0;
	java_user_return(&self);
	return r;
}

/* The listener must be the JVM, not someone who put a socket in its place. */
static int connect_check_peer(const struct java_attach *a, int fd, struct err *err)
{
	struct ucred peer = {};
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	    peer.pid == a->target.id.pid)
		return 0;
	return err_set(err, -EPERM,
		       "process %d: another process listens on the socket /tmp/.java_pid%d of its "
		       "JVM",
		       (int)a->target.id.pid, (int)a->target.status.inner_pid);
}

int java_attach_connect(const struct java_attach *a, uint64_t deadline_ns, int *ret_fd,
			struct err *err)
{
	_cleanup_close_ int found = -1, fd = -1;
	int r = connect_find(a, &found);

	if (r == 0) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r = fd < 0 ? -errno : connect_as(&a->target, fd, found);
	}
	/* The JVM is busy with others. */
	while (r == -EAGAIN && (r = java_patience_check(deadline_ns)) == 0) {
		clock_sleep_ns(20 * NS_PER_MS);
		r = connect_as(&a->target, fd, found);
	}
	if (r == -EPERM)
		return err_set(err, r,
			       "process %d: /tmp/.java_pid%d is not a socket owned by its user",
			       (int)a->target.id.pid, (int)a->target.status.inner_pid);
	if (r < 0)
		/* A socket without a listener was left by an earlier process. */
		return err_set(err, r == -ECONNREFUSED ? -ENOENT : r,
			       "cannot connect to the JVM of process %d: %s", (int)a->target.id.pid,
			       strerror(-r));
	r = connect_check_peer(a, fd, err);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

int java_attach_dial(const struct java_attach *a, uint64_t deadline_ns, int *ret_fd,
		     struct err *err)
{
	struct java_target now;
	int r = java_target_read(&a->target.id, &now, err);

	if (r == 0)
		r = java_target_check_stopped(&now, err);
	return r < 0 ? r : java_attach_connect(a, deadline_ns, ret_fd, err);
}
