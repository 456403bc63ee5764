/* src/java/jvmti/load.c: see load.h. */
#include "java/jvmti/load.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "java/attach/patience.h"
#include "java/attach/state.h"
#include "java/attach/wire.h"
#include "proc/text.h"

#define LOAD_ANSWER_MAX ((size_t)16 << 10)

/* Version 1 of the protocol, which all JVMs know: "1", the operation, three arguments. */
static int load_request(const char *path, const char *options, struct buf *request)
{
	const char *words[] = {"1", "load", path, "true", options};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(words); i++) {
		if (strlen(words[i]) > JAVA_WIRE_V1_ARG_MAX)
			return -E2BIG;
		r = buf_append(request, words[i], strlen(words[i]) + 1);
	}
	return r;
}

/* "return code: 0" since JDK 9, just the number before. */
int java_jvmti_parse_answer(struct view text, int *ret_code)
{
	static const char before[] = "return code: ";
	char line[32], *end;
	long code;

	if (view_starts_with(text, before))
		(void)view_sub(text, sizeof(before) - 1, text.len - (sizeof(before) - 1), &text);
	proc_text_copy(line, sizeof(line), view_of(text.data, MIN(text.len, sizeof(line) - 1)));
	errno = 0;
	code = strtol(line, &end, 10);
	/* The copy shows a line feed as '?'. */
	if (end == line || errno || code < INT_MIN || code > INT_MAX || (*end && *end != '?'))
		return -ENOENT;
	*ret_code = (int)code;
	return 0;
}

static int load_refused(const struct java_attach *a, struct view text, struct err *err)
{
	char line[160];
	size_t n = 0;

	while (n < text.len && text.data[n] != '\n')
		n++;
	proc_text_copy(line, sizeof(line), view_of(text.data, n));
	return err_set(err, -ENOTSUP, "the JVM of process %d cannot load a library: %s",
		       (int)a->target.id.pid, line[0] ? line : "no reason given");
}

int java_jvmti_load(struct java_attach *a, const char *path, const char *options, int *ret_code,
		    struct err *err)
{
	_cleanup_(buf_release) struct buf request = buf_with_max(8 * JAVA_WIRE_V1_ARG_MAX);
	_cleanup_(buf_release) struct buf answer = buf_with_max(LOAD_ANSWER_MAX);
	uint64_t deadline_ns = java_patience_begin(a->timeout_ns);
	_cleanup_close_ int fd = -1;
	struct view text;
	int r, status;

	r = load_request(path, options, &request);
	if (r < 0)
		return err_set(err, r, "a command of %zu bytes is too long for the JVM",
			       strlen(options));
	r = java_attach_dial(a, deadline_ns, &fd, err);
	if (r < 0)
		return r;
	r = java_wire_exchange(fd, buf_view(&request), deadline_ns, &answer, err);
	if (r < 0)
		return err_prefix(err, r, "process %d", (int)a->target.id.pid);
	r = java_wire_parse(buf_view(&answer), &status, &text);
	if (r < 0)
		return err_set(err, r, "process %d: invalid response from the JVM",
			       (int)a->target.id.pid);
	if (java_jvmti_parse_answer(text, ret_code) < 0)
		return load_refused(a, text, err);
	return 0;
}
