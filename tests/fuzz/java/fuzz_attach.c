/*
 * tests/fuzz/java/fuzz_attach.c: any bytes as what somebody answers on the socket of a JVM, and as
 * a note of ours.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "java/attach/wire.h"
#include "java/recorder/commands.h"
#include "java/recorder/note.h"

#define ANSWER_MAX ((size_t)16 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void exchange(const uint8_t *data, size_t size)
{
	_cleanup_(buf_release) struct buf answer = buf_with_max(ANSWER_MAX);
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0 ||
	    (size && write(fds[1], data, size) != (ssize_t)size) || shutdown(fds[1], SHUT_WR) < 0)
		__builtin_trap();
	r = java_wire_exchange(fds[0], view_str("hello"), clock_mono_ns() + NS_PER_SEC, &answer,
			       NULL);
	if (r == 0 ? answer.len != size : r != -E2BIG && r != -EPIPE)
		__builtin_trap();
	close(fds[0]);
	close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_of(data, size), rest;
	struct java_note note;
	char path[64];
	int status;

	if (size > 2 * ANSWER_MAX)
		return 0;
	exchange(data, size);
	if (java_wire_parse(text, &status, &rest) == 0)
		text = rest;
	(void)java_recorder_parse_check(text, "sonde");
	if (java_recorder_parse_directory(text, path, sizeof(path)) == 0 && path[0] &&
	    (path[0] != '/' || strchr(path, '"') || strlen(path) >= sizeof(path)))
		__builtin_trap();
	(void)java_recorder_parse_property(text, "java.io.tmpdir", path, sizeof(path));
	(void)java_note_parse(text, &note);
	return 0;
}
