/* src/java/attach/wire.c: see wire.h. */
#include "java/attach/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "java/attach/patience.h"

#define WIRE_PIECE ((size_t)16 << 10)

static int append_word(struct buf *b, const char *word)
{
	return buf_append(b, word, strlen(word) + 1);
}

int java_wire_request(unsigned int version, const char *operation, const char *arg,
		      struct buf *request)
{
	size_t len = strlen(operation) + 1 + strlen(arg) + 1;
	char number[24];
	int r;

	if (strlen(arg) > (version == 1 ? JAVA_WIRE_V1_ARG_MAX : JAVA_WIRE_ARG_MAX))
		return -E2BIG;
	r = append_word(request, version == 1 ? "1" : "2");
	if (r == 0 && version != 1) {
		(void)snprintf(number, sizeof(number), "%zu", len);
		r = append_word(request, number);
	}
	if (r == 0)
		r = append_word(request, operation);
	if (r == 0)
		r = append_word(request, arg);
	for (int i = 0; r == 0 && version == 1 && i < 2; i++)
		r = append_word(request, "");
	return r;
}

static int wire_wait(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = fd, .events = events};
	int r = java_patience_check(deadline_ns);

	if (r < 0)
		return r;
	if (poll(&p, 1, (int)MIN(java_patience_step(deadline_ns) / NS_PER_MS + 1, 60000)) < 0 &&
	    errno != EINTR)
		return -errno;
	return 0;
}

static int wire_send(int fd, struct view request, uint64_t deadline_ns)
{
	size_t sent = 0;

	while (sent < request.len) {
		ssize_t n = send(fd, request.data + sent, request.len - sent, MSG_NOSIGNAL);
		int r = 0;

		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EAGAIN)
			r = wire_wait(fd, POLLOUT, deadline_ns);
		else if (errno != EINTR)
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

static int wire_receive(int fd, uint64_t deadline_ns, struct buf *answer)
{
	for (;;) {
		/* Sending byte by byte must not hold us longer than sending nothing. */
		int r = java_patience_check(deadline_ns);
		char piece[WIRE_PIECE];
		ssize_t n;

		if (r < 0)
			return r;
		n = read(fd, piece, sizeof(piece));
		if (n == 0)
			return 0;
		if (n > 0)
			r = buf_append(answer, piece, (size_t)n);
		else if (errno == EAGAIN)
			r = wire_wait(fd, POLLIN, deadline_ns);
		else if (errno != EINTR)
			/*
			 * The JVM hung up without reading all of the request: its answer still
			 * counts.
			 */
			return errno == ECONNRESET && answer->len ? 0 : -errno;
		if (r < 0)
			return r;
	}
}

int java_wire_exchange(int fd, struct view request, uint64_t deadline_ns, struct buf *answer,
		       struct err *err)
{
	int r = wire_send(fd, request, deadline_ns);

	/* A JVM that rejects the request answers and hangs up before reading all of it. */
	if (r == 0 || r == -EPIPE)
		r = wire_receive(fd, deadline_ns, answer);
	if (r == -ETIMEDOUT || r == -EINTR)
		return err_set(err, r,
			       r == -EINTR ? "interrupted while waiting for the JVM"
					   : "the JVM does not respond");
	if (r == -E2BIG)
		return err_set(err, r, "the JVM's response exceeds %zu bytes", answer->max);
	if (r < 0 && r != -ECONNRESET)
		return err_set(err, r, "cannot communicate with the JVM: %s", strerror(-r));
	if (r < 0 || answer->len == 0)
		return err_set(err, -EPIPE, "the JVM closed the connection without a response");
	return 0;
}

int java_wire_parse(struct view answer, int *ret_status, struct view *ret_text)
{
	bool negative = answer.len && answer.data[0] == '-';
	size_t at = negative ? 1 : 0, digits = 0;
	int status = 0;

	for (; at < answer.len && answer.data[at] >= '0' && answer.data[at] <= '9'; at++) {
		if (++digits > 9)
			return -EBADMSG;
		status = status * 10 + (answer.data[at] - '0');
	}
	if (digits == 0 || (at < answer.len && answer.data[at] != '\n'))
		return -EBADMSG;
	at = MIN(at + 1, answer.len);
	(void)view_sub(answer, at, answer.len - at, ret_text);
	*ret_status = negative ? -status : status;
	return 0;
}
