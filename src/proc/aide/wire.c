/* src/proc/aide/wire.c: see wire.h. */
#include "proc/aide/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

int proc_aide_send(int sock, const void *message, size_t len, int fd)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = len};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *head;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		head = CMSG_FIRSTHDR(&msg);
		*head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS,
					 .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (int)n;
}

int proc_aide_receive(int sock, void *message, size_t len, int *ret_fd)
{
	struct iovec iov = {.iov_base = message, .iov_len = len};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	_cleanup_close_ int fd = -1;
	struct cmsghdr *head;
	ssize_t n;

	if (ret_fd)
		*ret_fd = -1;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return (int)n;
}
