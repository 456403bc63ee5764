/*
 * src/java/attach/wire.h: the protocol on a JVM's attach socket.
 *
 * Version 1: "1", the operation and exactly three arguments, each NUL-terminated and at most 1024
 * bytes; the JVM hangs up on more. Version 2 (JDK 24 and later) has a length instead: "2", the
 * number of bytes that follow, the operation, arguments. The response is a line with a number, then
 * text up to the end of the stream. Whoever holds the socket may respond anything, or nothing.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/view.h"

#define JAVA_WIRE_V1_ARG_MAX ((size_t)1024)
#define JAVA_WIRE_ARG_MAX ((size_t)64 << 10)

/* Appends the request. -E2BIG: the argument is too long for that version. */
int java_wire_request(unsigned int version, const char *operation, const char *arg,
		      struct buf *request);

/*
 * Sends the request and receives the answer up to its end, within the buffer's maximum and before
 * deadline_ns (java_patience_begin()). fd is nonblocking. -ETIMEDOUT, -EINTR, -E2BIG, -EPIPE: it
 * hung up first.
 */
int java_wire_exchange(int fd, struct view request, uint64_t deadline_ns, struct buf *answer,
		       struct err *err);

/* Splits an answer into its number and its text. -EBADMSG without a number. */
int java_wire_parse(struct view answer, int *ret_status, struct view *ret_text);
