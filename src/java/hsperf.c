/* src/java/hsperf.c: see hsperf.h. */
#include "java/hsperf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "java/attach/target.h"
#include "proc/file.h"
#include "proc/text.h"

#define HSPERF_HEADER 32
#define HSPERF_ENTRY 20

struct java_hsperf {
	int fd;
	uint8_t *bytes;
	size_t cap;
	struct view used; /* bytes, according to the header */
	uint32_t first;
	uint32_t n_entries;
};

void java_hsperf_close(struct java_hsperf *h)
{
	if (!h)
		return;
	closep(&h->fd);
	free(h->bytes);
	free(h);
}

int java_hsperf_open_take(int fd, struct java_hsperf **ret_hsperf, struct err *err)
{
	struct java_hsperf *h = calloc(1, sizeof(*h));

	if (!h) {
		closep(&fd);
		return err_oom(err);
	}
	h->fd = fd;
	*ret_hsperf = h;
	return 0;
}

/*
 * Tools that watch a JVM map its file, too, but read-only, and under a name that is not their pid.
 */
static bool hsperf_is_own(const struct proc_map *map, const char *number)
{
	const char *slash = strrchr(map->path, '/');

	return (map->flags & PROC_MAP_WRITE) && slash && strcmp(slash + 1, number) == 0 &&
	       strstr(map->path, "/hsperfdata_");
}

int java_hsperf_open(const struct proc_id *id, const struct proc_maps *maps,
		     struct java_hsperf **ret_hsperf, struct err *err)
{
	struct java_target target;
	char number[16];
	int r, fd;

	r = java_target_read(id, &target, err);
	if (r < 0)
		return r;
	(void)snprintf(number, sizeof(number), "%d", (int)target.status.inner_pid);
	for (size_t i = 0; i < maps->len; i++) {
		if (!hsperf_is_own(&maps->maps[i], number))
			continue;
		r = proc_file_open_mapped(id->pid, &maps->maps[i], &fd, err);
		return r < 0 ? r : java_hsperf_open_take(fd, ret_hsperf, err);
	}
	return err_set(
		err, -ENOENT,
		"process %d has no counter file (-XX:-UsePerfData or -XX:+PerfDisableSharedMem)",
		(int)id->pid);
}

/* The default is 32 KB; -XX:PerfDataMemorySize changes it: grow to the size of the file. */
static ssize_t hsperf_fill(struct java_hsperf *h)
{
	ssize_t n;

	for (;;) {
		size_t cap = h->cap ? h->cap * 2 : (size_t)64 << 10;
		uint8_t *bytes;

		n = h->cap ? io_pread_full(h->fd, h->bytes, h->cap, 0) : 0;
		if (n < 0 || (h->cap && (size_t)n < h->cap))
			return n;
		if (h->cap >= JAVA_HSPERF_MAX_BYTES)
			return -E2BIG;
		bytes = realloc(h->bytes, cap);
		if (!bytes)
			return -ENOMEM;
		h->bytes = bytes;
		h->cap = cap;
	}
}

static int hsperf_parse_header(struct java_hsperf *h, struct view file, struct err *err)
{
	static const uint8_t magic[] = {0xca, 0xfe, 0xc0, 0xc0};
	uint8_t order = 0, major = 0, accessible = 0;
	uint32_t used = 0, first = 0, n = 0;

	if (!view_has(file, 0, HSPERF_HEADER) || memcmp(file.data, magic, sizeof(magic)) != 0)
		return err_set(err, -EBADMSG, "not a JVM counter file");
	(void)view_u8(file, 4, &order);
	(void)view_u8(file, 5, &major);
	(void)view_u8(file, 7, &accessible);
	(void)view_u32(file, 8, &used);
	(void)view_u32(file, 24, &first);
	(void)view_u32(file, 28, &n);
	if (order != 1 || major != 2)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION, "",
				"the JVM's counters have version %u and byte order %u, which is "
				"not supported",
				major, order);
	if (!accessible)
		return err_set(err, -EAGAIN, "the JVM is still starting");
	if (first < HSPERF_HEADER || n > JAVA_HSPERF_MAX_ENTRIES ||
	    !view_sub(file, 0, used, &h->used))
		return err_set(err, -EBADMSG, "the header of the JVM's counters is invalid");
	h->first = first;
	h->n_entries = n;
	return 0;
}

int java_hsperf_read(struct java_hsperf *h, struct err *err)
{
	ssize_t n = hsperf_fill(h);

	h->n_entries = 0;
	if (n == -E2BIG)
		return err_set(err, -E2BIG, "the JVM counter file exceeds %zu bytes",
			       JAVA_HSPERF_MAX_BYTES);
	if (n < 0)
		return err_set(err, (int)n, "cannot read the JVM's counters: %s",
			       strerror((int)-n));
	return hsperf_parse_header(h, view_of(h->bytes, (size_t)n), err);
}

/* The text at off, up to the first NUL. */
static bool hsperf_cstr(struct view entry, uint32_t off, struct view *ret)
{
	return off >= HSPERF_ENTRY && view_cstr(entry, off, ret);
}

static bool hsperf_parse_value(struct view entry, struct java_counter *c)
{
	uint32_t len, off;
	uint64_t number;
	uint8_t type;

	if (!view_u32(entry, 8, &len) || !view_u8(entry, 12, &type) || !view_u32(entry, 16, &off) ||
	    off < HSPERF_ENTRY)
		return false;
	if (type == 'B' && len) {
		c->is_text = true;
		if (!view_sub(entry, off, len, &c->text))
			return false;
		c->text.len = strnlen((const char *)c->text.data, c->text.len);
		return true;
	}
	if (type != 'J' || len || !view_u64(entry, off, &number))
		return false;
	c->number = (int64_t)number;
	return true;
}

/*
 * *at holds the entry's number in the upper half and its offset in the lower. An entry of length 0
 * is about to be filled in by the JVM, and is the last one.
 */
int java_hsperf_next(const struct java_hsperf *h, size_t *at, struct java_counter *ret)
{
	uint64_t off = *at ? *at & UINT32_MAX : h->first;
	uint64_t number = (uint64_t)*at >> 32;
	struct java_counter c = {};
	uint32_t len, name;
	struct view entry;

	if (number >= h->n_entries || !view_u32(h->used, off, &len) || len == 0)
		return 0;
	if (len < HSPERF_ENTRY || !view_sub(h->used, off, len, &entry) ||
	    !view_u32(entry, 4, &name) || !hsperf_cstr(entry, name, &c.name) ||
	    !hsperf_parse_value(entry, &c))
		return -EBADMSG;
	*at = (size_t)((number + 1) << 32 | (off + len));
	*ret = c;
	return 1;
}

static bool hsperf_find(const struct java_hsperf *h, const char *name, struct java_counter *ret)
{
	struct view wanted = view_str(name);
	size_t at = 0;

	while (java_hsperf_next(h, &at, ret) > 0)
		if (view_eq(ret->name, wanted))
			return true;
	return false;
}

bool java_hsperf_number(const struct java_hsperf *h, const char *name, int64_t *ret)
{
	struct java_counter c;

	if (!hsperf_find(h, name, &c) || c.is_text)
		return false;
	*ret = c.number;
	return true;
}

bool java_hsperf_text(const struct java_hsperf *h, const char *name, char *dst, size_t cap)
{
	struct java_counter c;

	if (!hsperf_find(h, name, &c) || !c.is_text)
		return false;
	proc_text_copy(dst, cap, c.text);
	return true;
}
