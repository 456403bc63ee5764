/* src/java/perfmap/text.c: see text.h. */
#include "java/perfmap/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "java/jfr/names.h"

#define TEXT_CHUNK ((size_t)64 << 10)
#define TEXT_MAX_CLASS ((size_t)1024)

/* The position after the last such byte in [begin, end); begin if there is none. */
static size_t text_behind_last(struct view text, size_t begin, size_t end, uint8_t byte)
{
	while (end > begin && text.data[end - 1] != byte)
		end--;
	return end;
}

int java_perfmap_name(struct buf *out, struct view name)
{
	const uint8_t *args = name.len ? memchr(name.data, '(', name.len) : NULL;
	size_t end = args ? (size_t)(args - name.data) : 0;
	size_t begin = text_behind_last(name, 0, end, ' ');
	size_t method = text_behind_last(name, begin, end, '.');
	uint8_t class_name[TEXT_MAX_CLASS];
	size_t n;

	/* "StubRoutines (1)" is not a method: there is no name before the arguments. */
	if (begin == 0 || method < begin + 2 || method == end)
		return buf_append(out, name.data, name.len);
	n = MIN(method - 1 - begin, sizeof(class_name));
	for (size_t i = 0; i < n; i++)
		class_name[i] = name.data[begin + i] == '.' ? '/' : name.data[begin + i];
	return java_jfr_names_method(out, view_of(class_name, n),
				     view_of(name.data + method, end - method), false);
}

/* START SIZE NAME; 1 if the line was added. */
static int text_add_line(struct buf *out, struct view line)
{
	size_t at = 0, before = out->len;
	int r;

	for (int blanks = 0; blanks < 2; blanks++) {
		while (at < line.len && line.data[at] != ' ')
			at++;
		if (at == line.len)
			return 0;
		at++;
	}
	if (at == line.len)
		return 0;
	r = buf_append(out, line.data, at);
	if (r == 0)
		r = java_perfmap_name(out, view_of(line.data + at, line.len - at));
	if (r == 0)
		r = buf_append_byte(out, '\n');
	if (r < 0)
		out->len = before;
	return r < 0 ? r : 1;
}

/* Converts the complete lines; returns their length in bytes. */
static ssize_t text_add(struct buf *out, struct view text, uint64_t *functions)
{
	struct view rest = text, line;

	while (view_take_line(&rest, &line)) {
		int r = text_add_line(out, line);

		if (r < 0)
			return r;
		*functions += (uint64_t)r;
	}
	return (ssize_t)(text.len - rest.len);
}

int java_perfmap_copy(int from, int to, uint64_t max, struct java_perfmap_copied *ret_copied)
{
	/* Names only get shorter, except for the brackets of arrays. */
	_cleanup_(buf_release) struct buf out = buf_with_max(16 * TEXT_CHUNK);
	_cleanup_free_ uint8_t *chunk = malloc(TEXT_CHUNK);
	struct java_perfmap_copied copied = {0};
	struct stat st;
	uint64_t end, done = 0;

	if (!chunk)
		return -ENOMEM;
	if (fstat(from, &st) < 0)
		return -errno;
	end = MIN((uint64_t)MAX(st.st_size, 0), max);
	while (done < end) {
		ssize_t n = io_pread_full(from, chunk, MIN(TEXT_CHUNK, end - done), done), used;
		int r;

		if (n <= 0)
			break;
		buf_clear(&out);
		used = text_add(&out, view_of(chunk, (size_t)n), &copied.functions);
		r = used < 0 ? (int)used : io_write_full(to, out.data, out.len);
		if (r < 0)
			return r;
		/* A line that fills the chunk is skipped; an incomplete one is the end. */
		if (used == 0 && (size_t)n < TEXT_CHUNK)
			break;
		done += (uint64_t)(used ? used : n);
	}
	copied.is_cut = done < (uint64_t)st.st_size;
	*ret_copied = copied;
	return 0;
}
