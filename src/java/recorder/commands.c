/* src/java/recorder/commands.c: see commands.h. */
#include "java/recorder/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proc/text.h"

#define JFR_ANSWER_MAX ((size_t)256 << 10)

/* Takes the next line; false after the last one. */
static bool next_line(struct view *text, struct view *ret_line)
{
	const uint8_t *end = text->len ? memchr(text->data, '\n', text->len) : NULL;
	size_t n = end ? (size_t)(end - text->data) : text->len;

	if (text->len == 0)
		return false;
	(void)view_sub(*text, 0, n, ret_line);
	(void)view_sub(*text, end ? n + 1 : n, text->len - n - (end ? 1 : 0), text);
	return true;
}

static bool line_contains(struct view line, const char *word)
{
	return line.len && memmem(line.data, line.len, word, strlen(word));
}

/* "Recording 1: name=x (running)", and before JDK 9 "Recording: recording=1 name=\"x\"". */
int java_recorder_parse_check(struct view answer, const char *name)
{
	bool understood = false;
	struct view line;
	int found = 0;

	while (next_line(&answer, &line)) {
		if (view_starts_with(line, "No available recordings"))
			understood = true;
		if (!view_starts_with(line, "Recording ") && !view_starts_with(line, "Recording:"))
			continue;
		understood = true;
		found |= line_contains(line, name) ? JAVA_RECORDER_OURS : JAVA_RECORDER_OTHERS;
	}
	return understood ? found : -EBADMSG;
}

/* Accepts only a path that can be passed back in a command unchanged. */
static int copy_path(struct view path, char *dst, size_t cap)
{
	if (path.len == 0 || path.len >= cap || path.data[0] != '/')
		return -EBADMSG;
	for (size_t i = 0; i < path.len; i++)
		if (path.data[i] < 0x20 || path.data[i] == '"' || path.data[i] == '\'' ||
		    path.data[i] == '\\')
			return -EBADMSG;
	(void)view_copy(path, 0, dst, path.len);
	dst[path.len] = 0;
	return 0;
}

int java_recorder_parse_directory(struct view answer, char *dst, size_t cap)
{
	static const char key[] = "Repository path: ";
	struct view line, path;

	while (next_line(&answer, &line)) {
		size_t n;

		if (!view_starts_with(line, key))
			continue;
		(void)view_sub(line, sizeof(key) - 1, line.len - (sizeof(key) - 1), &path);
		if (view_eq(path, view_str("N/A"))) {
			dst[0] = 0;
			return 0;
		}
		n = path.len;
		while (n > 0 && path.data[n - 1] != '/')
			n--;
		path.len = n > 1 ? n - 1 : n;
		return copy_path(path, dst, cap);
	}
	return -EBADMSG;
}

int java_recorder_parse_property(struct view answer, const char *name, char *dst, size_t cap)
{
	struct view line;

	while (next_line(&answer, &line)) {
		char value[512];
		size_t n = 0;

		if (!view_starts_with(line, name) || line.len <= strlen(name) ||
		    line.data[strlen(name)] != '=')
			continue;
		/* "\:" stands for ":"; code points are not supported. */
		for (size_t i = strlen(name) + 1; i < line.len; i++) {
			if (line.data[i] == '\\' && (++i == line.len || line.data[i] == 'u'))
				return -EBADMSG;
			if (n == sizeof(value))
				return -EBADMSG;
			value[n++] = (char)line.data[i];
		}
		return copy_path(view_of(value, n), dst, cap);
	}
	return -ENOENT;
}

static int jfr_ask(struct java_attach *a, const char *command, struct buf *answer, struct err *err)
{
	*answer = buf_with_max(JFR_ANSWER_MAX);
	return java_attach_jcmd(a, command, answer, err);
}

/* Reports the JVM's own reason. */
static int jfr_refused(struct java_attach *a, const char *what, struct view answer, struct err *err)
{
	struct view line = {};
	char words[160];

	while (next_line(&answer, &line) && line.len == 0)
		;
	proc_text_copy(words, sizeof(words), line);
	return err_set(err, -ENOTSUP, "the JVM of process %d failed to %s: %s",
		       (int)java_attach_vm(a)->id.pid, what, words);
}

static int jfr_default_directory(struct java_attach *a, char *dst, size_t cap, struct err *err)
{
	_cleanup_(buf_release) struct buf answer = {};
	int r = jfr_ask(a, "VM.system_properties", &answer, err);

	if (r < 0)
		return r;
	if (java_recorder_parse_property(buf_view(&answer), "java.io.tmpdir", dst, cap) < 0)
		(void)snprintf(dst, cap, "/tmp");
	return 0;
}

int java_recorder_directory(struct java_attach *a, char *dst, size_t cap, struct err *err)
{
	_cleanup_(buf_release) struct buf answer = {};
	int r = jfr_ask(a, "JFR.configure", &answer, err);

	if (r < 0)
		return r;
	r = java_recorder_parse_directory(buf_view(&answer), dst, cap);
	if (r < 0)
		return jfr_refused(a, "report where it keeps recordings", buf_view(&answer), err);
	return dst[0] ? 0 : jfr_default_directory(a, dst, cap, err);
}

int java_recorder_set_directory(struct java_attach *a, const char *dir, unsigned int stack_depth,
				struct err *err)
{
	_cleanup_(buf_release) struct buf answer = {};
	char command[512], depth[32] = "", is[256];
	int r;

	if (stack_depth)
		(void)snprintf(depth, sizeof(depth), " stackdepth=%u", stack_depth);
	(void)snprintf(command, sizeof(command), "JFR.configure repositorypath=\"%s\"%s", dir,
		       depth);
	r = jfr_ask(a, command, &answer, err);
	if (r < 0)
		return r;
	if (java_recorder_parse_directory(buf_view(&answer), is, sizeof(is)) < 0 ||
	    strcmp(is, dir) != 0)
		return jfr_refused(a, "change where it keeps recordings", buf_view(&answer), err);
	return 0;
}

int java_recorder_find(struct java_attach *a, const char *name, struct err *err)
{
	_cleanup_(buf_release) struct buf answer = {};
	int r = jfr_ask(a, "JFR.check", &answer, err);

	if (r < 0)
		return r;
	r = java_recorder_parse_check(buf_view(&answer), name);
	if (r < 0)
		return jfr_refused(a, "list its recordings", buf_view(&answer), err);
	return r;
}

int java_recorder_start(struct java_attach *a, const char *name, const char *settings,
			struct err *err)
{
	_cleanup_(buf_release) struct buf answer = {};
	char command[512];
	int r;

	/* If sonde stops taking the data, old data is discarded. */
	(void)snprintf(command, sizeof(command),
		       "JFR.start name=%s settings=%s disk=true maxage=2m maxsize=8m", name,
		       settings);
	r = jfr_ask(a, command, &answer, err);
	if (r < 0)
		return r;
	/* The status is 0 even on failure. */
	if (!line_contains(buf_view(&answer), "Started recording"))
		return jfr_refused(a, "record", buf_view(&answer), err);
	return 0;
}

int java_recorder_stop(struct java_attach *a, const char *name, struct err *err)
{
	_cleanup_(buf_release) struct buf answer = {};
	char command[128];
	int r;

	(void)snprintf(command, sizeof(command), "JFR.stop name=%s", name);
	r = jfr_ask(a, command, &answer, err);
	/* This status says that there is no such recording. */
	if (r == -EPROTO)
		return 0;
	return r < 0 ? r : line_contains(buf_view(&answer), "Stopped recording");
}

int java_recorder_rotate(struct java_attach *a, const char *name, struct err *err)
{
	_cleanup_(buf_release) struct buf answer = {};
	char command[128];
	int r;

	(void)snprintf(command, sizeof(command), "JFR.dump name=%s filename=/dev/null", name);
	r = jfr_ask(a, command, &answer, err);
	if (r == 0 && !line_contains(buf_view(&answer), "Dumped recording"))
		return jfr_refused(a, "start a new file", buf_view(&answer), err);
	return r;
}
