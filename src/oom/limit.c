/*
 * src/oom/limit.c: see limit.h.
 *
 * /proc/PID/cgroup has "4:memory:/a/b" in version 1 and "0::/a/b" in version 2. Each parent group
 * may have a limit. The usage file stays open, so a check is one system call.
 */
#include "oom/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"

/* A container and its pod, a unit and its slice: four are enough. */
#define LIMIT_MAX_GROUPS 4
#define LIMIT_MAX_DEPTH 64
/* In version 1, a number near 2^63 means no limit. */
#define LIMIT_NONE (UINT64_C(1) << 62)
#define LIMIT_MAX_TEXT ((size_t)256 << 10)

struct limit_group {
	int usage; /* descriptor */
	uint64_t limit_bytes;
	uint64_t used_bytes; /* at the last check */
	uint64_t seen_bytes; /* time of the last growth estimate */
	uint64_t seen_ns;    /* 0: not yet */
	bool v1;
	char dir[2 * OOM_PATH_MAX];
};

struct oom_limit {
	struct limit_group groups[LIMIT_MAX_GROUPS];
	size_t len;
};

/* False for "max" and anything else that is not a number. */
static bool parse_bytes(const char *text, uint64_t *ret_bytes)
{
	char *end;

	errno = 0;
	*ret_bytes = strtoull(text, &end, 10);
	return errno == 0 && end != text && text[0] >= '0' && text[0] <= '9';
}

static bool read_bytes(int fd, uint64_t *ret_bytes)
{
	char text[32];
	ssize_t n = io_pread_full(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = 0;
	return parse_bytes(text, ret_bytes);
}

static int group_file(const char *dir, const char *name)
{
	char path[3 * OOM_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void limit_add(struct oom_limit *l, const char *dir, bool v1)
{
	_cleanup_close_ int limit = group_file(dir, v1 ? "memory.limit_in_bytes" : "memory.max");
	struct limit_group g = {.v1 = v1};

	if (limit < 0 || !read_bytes(limit, &g.limit_bytes) || g.limit_bytes == 0 ||
	    g.limit_bytes >= LIMIT_NONE)
		return;
	(void)snprintf(g.dir, sizeof(g.dir), "%s", dir);
	g.usage = group_file(dir, v1 ? "memory.usage_in_bytes" : "memory.current");
	if (g.usage >= 0)
		l->groups[l->len++] = g;
}

/* From the group itself up to the mounted root. */
static void limit_climb(struct oom_limit *l, const struct oom_mount *m, const char *path, bool v1)
{
	size_t root = strlen(m->root);
	char dir[2 * OOM_PATH_MAX];
	size_t mount;
	int n;

	/* Groups outside our view have ".." in their path. */
	if (!m->dir[0] || path[0] != '/' || strstr(path, "/..") ||
	    strncmp(path, m->root, root) != 0 || (path[root] != '/' && path[root] != 0))
		return;
	n = snprintf(dir, sizeof(dir), "%s%s", m->dir, path + root);
	if (n < 0 || (size_t)n >= sizeof(dir))
		return;
	mount = strlen(m->dir);
	for (int depth = 0; depth < LIMIT_MAX_DEPTH && l->len < LIMIT_MAX_GROUPS; depth++) {
		char *slash;

		limit_add(l, dir, v1);
		slash = strrchr(dir, '/');
		if (!slash || (size_t)(slash - dir) < mount)
			return;
		*slash = 0;
	}
}

static void limit_line(struct oom_limit *l, const struct oom_mounts *m, const char *line)
{
	const char *list = strchr(line, ':');
	const char *path = list ? strchr(list + 1, ':') : NULL;

	if (!path)
		return;
	list++;
	if (path == list)
		limit_climb(l, &m->v2, path + 1, false);
	else if (oom_has_word(list, (size_t)(path - list), "memory"))
		limit_climb(l, &m->v1, path + 1, true);
}

int oom_limit_open(const struct oom_mounts *mounts, const char *cgroup,
		   struct oom_limit **ret_limit, struct err *err)
{
	struct oom_limit *l = calloc(1, sizeof(*l));

	if (!l)
		return err_oom(err);
	while (*cgroup) {
		size_t n = strcspn(cgroup, "\n");
		char line[2 * OOM_PATH_MAX];

		if (n < sizeof(line)) {
			memcpy(line, cgroup, n);
			line[n] = 0;
			limit_line(l, mounts, line);
		}
		cgroup += n + (cgroup[n] == '\n');
	}
	*ret_limit = l;
	return 0;
}

/* The line "inactive_file 4096"; in version 1 "total_inactive_file", which includes children. */
static uint64_t group_droppable(const struct limit_group *g)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(LIMIT_MAX_TEXT);
	const char *key = g->v1 ? "\ntotal_inactive_file " : "\ninactive_file ";
	_cleanup_close_ int fd = group_file(g->dir, "memory.stat");
	const char *at;
	uint64_t bytes;

	if (fd < 0 || io_read_all(fd, &text) < 0 || !buf_cstr(&text))
		return 0;
	at = strstr(buf_cstr(&text), key);
	return at && parse_bytes(at + strlen(key), &bytes) ? bytes : 0;
}

static bool group_is_over(const struct limit_group *g, uint64_t used, unsigned int percent)
{
	return (double)used * 100 >= (double)g->limit_bytes * percent;
}

bool oom_limit_is_near(struct oom_limit *l, unsigned int percent, struct oom_fill *ret_fill)
{
	for (size_t i = 0; i < l->len; i++) {
		struct limit_group *g = &l->groups[i];
		uint64_t used, droppable;

		if (!read_bytes(g->usage, &used))
			continue;
		g->used_bytes = used;
		if (!group_is_over(g, used, percent))
			continue;
		droppable = group_droppable(g);
		used -= MIN(used, droppable);
		if (!group_is_over(g, used, percent))
			continue;
		*ret_fill = (struct oom_fill){.used_bytes = used, .limit_bytes = g->limit_bytes};
		return true;
	}
	return false;
}

static uint64_t group_left_ns(const struct limit_group *g, unsigned int percent, uint64_t now_ns)
{
	double grown = (double)g->used_bytes - (double)g->seen_bytes;
	double missing = (double)g->limit_bytes * percent / 100 - (double)g->used_bytes;
	double left;

	if (!g->seen_ns)
		return 0;
	/* Above the share and yet not near: full of page cache. */
	if (grown <= 0 || missing <= 0)
		return UINT64_MAX;
	left = missing / grown * (double)(now_ns - g->seen_ns);
	return left < (double)(UINT64_MAX / 2) ? (uint64_t)left : UINT64_MAX;
}

uint64_t oom_limit_left_ns(struct oom_limit *l, unsigned int percent, uint64_t now_ns)
{
	uint64_t left = UINT64_MAX;

	for (size_t i = 0; i < l->len; i++) {
		struct limit_group *g = &l->groups[i];

		left = MIN(left, group_left_ns(g, percent, now_ns));
		g->seen_bytes = g->used_bytes;
		g->seen_ns = now_ns;
	}
	return left;
}

void oom_limit_close(struct oom_limit *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->len; i++)
		closep(&l->groups[i].usage);
	free(l);
}
