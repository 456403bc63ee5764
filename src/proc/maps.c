/* src/proc/maps.c: see maps.h. */
#include "proc/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "proc/aide/aides.h"
#include "proc/ranges.h"

#define MAPS_ATTEMPTS 4
#define MAPS_DELETED " (deleted)"

/* A line being parsed. Every step fails on what a kernel would not write. */
struct maps_line {
	struct view text;
	size_t at;
};

static bool line_hex(struct maps_line *l, uint64_t *ret)
{
	uint64_t value = 0;
	size_t digits = 0;

	for (; l->at < l->text.len; l->at++, digits++) {
		uint8_t c = l->text.data[l->at];

		if (c >= '0' && c <= '9')
			c = (uint8_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			c = (uint8_t)(c - 'a' + 10);
		else
			break;
		if (value >> 60)
			return false;
		value = value << 4 | c;
	}
	*ret = value;
	return digits > 0;
}

static bool line_decimal(struct maps_line *l, uint64_t *ret)
{
	uint64_t value = 0;
	size_t digits = 0;

	for (; l->at < l->text.len; l->at++, digits++) {
		uint8_t c = l->text.data[l->at];

		if (c < '0' || c > '9')
			break;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
			return false;
	}
	*ret = value;
	return digits > 0;
}

static bool line_char(struct maps_line *l, char c)
{
	if (l->at >= l->text.len || l->text.data[l->at] != (uint8_t)c)
		return false;
	l->at++;
	return true;
}

static bool line_flags(struct maps_line *l, unsigned int *ret)
{
	struct view f;
	unsigned int flags = 0;

	if (!view_sub(l->text, l->at, 4, &f) || !f.data)
		return false;
	for (int i = 0; i < 3; i++) {
		if (f.data[i] == (uint8_t) "rwx"[i])
			flags |= 1u << i;
		else if (f.data[i] != '-')
			return false;
	}
	if (f.data[3] == 's')
		flags |= PROC_MAP_SHARED;
	else if (f.data[3] != 'p')
		return false;
	l->at += 4;
	*ret = flags;
	return true;
}

static bool line_parse(struct maps_line *l, struct proc_map *m, struct view *ret_path)
{
	uint64_t major_no, minor_no;

	if (!line_hex(l, &m->start) || !line_char(l, '-') || !line_hex(l, &m->end) ||
	    !line_char(l, ' ') || !line_flags(l, &m->flags) || !line_char(l, ' ') ||
	    !line_hex(l, &m->offset) || !line_char(l, ' ') || !line_hex(l, &major_no) ||
	    !line_char(l, ':') || !line_hex(l, &minor_no) || !line_char(l, ' ') ||
	    !line_decimal(l, &m->inode))
		return false;
	if (m->start >= m->end || major_no > UINT32_MAX || minor_no > UINT32_MAX)
		return false;
	m->dev = makedev((unsigned int)major_no, (unsigned int)minor_no);
	if (l->at < l->text.len && !line_char(l, ' '))
		return false;
	while (line_char(l, ' '))
		;
	return view_sub(l->text, l->at, l->text.len - l->at, ret_path);
}

/* In names the kernel escapes only newlines, as \012. */
static void path_unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = 0;
}

/* Neighbours are mostly parts of one file and share a copy of its name. */
static const char *path_keep(struct proc_maps *maps, struct view path)
{
	const char *last = maps->len ? maps->maps[maps->len - 1].path : "";
	char *copy;

	if (path.len == 0)
		return "";
	if (strlen(last) == path.len && memcmp(last, path.data, path.len) == 0)
		return last;
	copy = arena_alloc(&maps->paths, path.len + 1);
	if (copy)
		memcpy(copy, path.data, path.len);
	return copy;
}

/* Appends a mapping; the name need not be NUL-terminated yet. */
static int maps_append(struct proc_maps *maps, const struct proc_map *map, struct view path,
		       struct err *err)
{
	struct proc_map *m;
	const char *kept;

	if (maps->len == maps->cap) {
		size_t cap = MIN(MAX(maps->cap * 2, (size_t)64), PROC_MAPS_MAX);

		if (maps->len >= PROC_MAPS_MAX)
			return err_set(err, -E2BIG, "more than %zu mappings", PROC_MAPS_MAX);
		m = realloc(maps->maps, cap * sizeof(*m));
		if (!m)
			return err_oom(err);
		maps->maps = m;
		maps->cap = cap;
	}
	kept = path_keep(maps, path);
	if (!kept)
		return err_oom(err);
	maps->maps[maps->len] = *map;
	maps->maps[maps->len].path = kept;
	maps->len++;
	return 0;
}

int proc_maps_add(struct proc_maps *maps, const struct proc_map *map, struct err *err)
{
	return maps_append(maps, map, view_str(map->path ? map->path : ""), err);
}

static int maps_add_line(struct proc_maps *maps, struct view text, struct err *err)
{
	struct maps_line line = {.text = text};
	size_t n = strlen(MAPS_DELETED);
	struct proc_map m = {0};
	struct view path, tail;
	uint64_t floor = maps->len ? maps->maps[maps->len - 1].end : 0;
	int r;

	if (!line_parse(&line, &m, &path) || !path.data || m.start < floor ||
	    memchr(path.data, 0, path.len))
		return err_set(err, -EBADMSG, "cannot parse a line of the maps file");
	if (view_starts_with(path, "/") && path.len > n && view_sub(path, path.len - n, n, &tail) &&
	    view_eq(tail, view_str(MAPS_DELETED))) {
		m.flags |= PROC_MAP_DELETED;
		path.len -= n;
	}
	if (path.len && memmem(path.data, path.len, "\\012", 4)) {
		_cleanup_free_ char *plain = strndup((const char *)path.data, path.len);

		if (!plain)
			return err_oom(err);
		path_unescape(plain);
		r = maps_append(maps, &m, view_str(plain), err);
	} else {
		r = maps_append(maps, &m, path, err);
	}
	return r;
}

int proc_maps_parse(struct view text, struct proc_maps *maps, struct err *err)
{
	size_t before = maps->len;

	for (size_t at = 0; text.data && at < text.len;) {
		const uint8_t *line = text.data + at;
		const uint8_t *end = memchr(line, '\n', text.len - at);
		size_t n = end ? (size_t)(end - line) : text.len - at;
		int r = maps_add_line(maps, view_of(line, n), err);

		if (r < 0) {
			maps->len = before;
			return r;
		}
		at += n + 1;
	}
	return 0;
}

static int maps_read(pid_t pid, struct buf *text, struct proc_maps *maps, struct err *err)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	buf_clear(text);
	r = proc_aides_read(pid, "maps", text);
	if (r == -ENOENT || r == -ESRCH)
		return err_set(err, -ESRCH, "process %d has exited", (int)pid);
	if (r == -EACCES)
		return err_set(
			err, -EPERM,
			"not enough permissions to read %s; run as root, or with CAP_SYS_PTRACE "
			"and CAP_DAC_READ_SEARCH",
			path);
	if (r == -ETIMEDOUT || r == -EBUSY)
		return err_lack(err, -ETIMEDOUT, ERR_CAUSE_NO_ANSWER, "",
				"process %d is not responding", (int)pid);
	if (r < 0)
		return err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	r = proc_maps_parse(buf_view(text), maps, err);
	return r < 0 ? err_prefix(err, r, "%s", path) : 0;
}

/*
 * The kernel prints them piece by piece. A mapping that grows between two pieces is printed twice,
 * once with its old end.
 */
int proc_maps_read(pid_t pid, struct proc_maps *maps, struct err *err)
{
	_cleanup_(buf_release) struct buf text = {0};
	int r = -EBADMSG;

	for (int i = 0; r == -EBADMSG && i < MAPS_ATTEMPTS; i++)
		r = maps_read(pid, &text, maps, err);
	return r;
}

const struct proc_map *proc_maps_find(const struct proc_maps *maps, uint64_t addr)
{
	size_t i = proc_ranges_from(maps->maps, maps->len, sizeof(*maps->maps), addr);

	return i < maps->len && addr >= maps->maps[i].start ? &maps->maps[i] : NULL;
}

void proc_maps_release(struct proc_maps *maps)
{
	free(maps->maps);
	arena_release(&maps->paths);
	*maps = (struct proc_maps){.paths.max = maps->paths.max};
}
