/*
 * src/proc/owner.c: the service name of a process, and who it belongs to.
 *
 * Owners, by what proves them:
 *
 *   container, pod   its image, if the kernel tells it: all containers of one image are one
 * workload; else the pod or the container itself unit             the system's service manager;
 * people's processes in one (cron) are theirs uid              everything else
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/info.h"
#include "proc/text.h"

/* Accounts below are the system's (login.defs), and so are those that systemd makes up. */
#define OWNER_FIRST_PERSON 1000
#define OWNER_FIRST_DYNAMIC 61184
#define OWNER_LAST_DYNAMIC 65519
/* FILEID_KERNFS of the kernel's exportfs.h: the inode's number is the handle. */
#define CGROUP_HANDLE 0xfe

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* A container id of 64 digits means nothing to people, and changes at every start. */
static bool info_container_has_name(const struct proc_info *info)
{
	size_t n = strlen(info->container);

	return n > 0 && !(n == 64 && strspn(info->container, "0123456789abcdef") == n);
}

static bool info_is_contained(const struct proc_info *info)
{
	return starts_with(info->workload, "container ") || starts_with(info->workload, "pod ");
}

/* Whether that is what the machine's manager calls it, as kind. */
static bool info_is_proven(const struct proc_info *info, const char *kind, const char *name)
{
	return starts_with(info->workload, kind) &&
	       strcmp(info->workload + strlen(kind), name) == 0;
}

static bool uid_is_system(uid_t uid)
{
	return uid < OWNER_FIRST_PERSON ||
	       (uid >= OWNER_FIRST_DYNAMIC && uid <= OWNER_LAST_DYNAMIC);
}

static void info_find_owner(struct proc_info *info)
{
	if (info_is_contained(info)) {
		info->rank = PROC_RANK_CONTAINER;
		(void)snprintf(info->owner, sizeof(info->owner), "%s",
			       info->image[0] ? info->image : info->workload);
	} else if (info->workload[0] && uid_is_system(info->uid)) {
		info->rank = info->uid == 0 ? PROC_RANK_ROOT : PROC_RANK_UNIT;
		(void)snprintf(info->owner, sizeof(info->owner), "%s", info->workload);
	} else if (info->uid != PROC_UID_UNKNOWN) {
		info->rank =
			info->uid == 0 || info->uid == geteuid() ? PROC_RANK_ROOT : PROC_RANK_USER;
		(void)snprintf(info->owner, sizeof(info->owner), "uid %lu",
			       (unsigned long)info->uid);
	} else {
		info->rank = PROC_RANK_USER;
		info->owner[0] = 0;
	}
}

/* Its manager's name for it; the owner is what it was put into, whoever's it is. */
static void info_prove(struct proc_info *info)
{
	info->rank = PROC_RANK_PROVEN;
	memcpy(info->owner, info->workload, sizeof(info->owner));
}

static void info_name_program(struct proc_info *info)
{
	const char *slash = strrchr(info->exe, '/');
	struct view name = view_str(info->comm[0] ? info->comm : "?");

	if (info->program[0])
		return;
	if (slash && slash[1])
		name = view_str(slash + 1);
	proc_text_copy(info->program, sizeof(info->program), name);
}

void proc_info_name_service(struct proc_info *info)
{
	struct view name;

	info_find_owner(info);
	info_name_program(info);
	name = view_str(info->program);
	if (info->service[0])
		return;
	if (info_container_has_name(info)) {
		name = view_str(info->container);
		if (info_is_proven(info, "container ", info->container))
			info_prove(info);
	} else if (info->unit[0] && !info->container[0]) {
		name = view_str(info->unit);
		if (name.len > strlen(".service"))
			name.len -= strlen(".service");
		if (info_is_proven(info, "unit ", info->unit))
			info_prove(info);
	}
	proc_text_copy(info->service, sizeof(info->service), name);
}

void proc_info_keep_program(struct proc_info *info, const struct proc_info *before)
{
	if (strcmp(info->service, info->program) == 0)
		memcpy(info->service, before->program, sizeof(info->service));
	memcpy(info->program, before->program, sizeof(info->program));
	memcpy(info->command, before->command, sizeof(info->command));
}

/* --- images ---------------------------------------------------------------------------------- */

/* FNV-1a: the same at every start, and nobody but the container manager chooses the paths. */
static uint64_t image_hash(uint64_t hash, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ULL;
	return hash;
}

/* The next field of a line; NULL if there is none. */
static const char *field_next(const char *at, const char *end)
{
	const char *blank = memchr(at, ' ', (size_t)(end - at));

	return blank ? blank + 1 : NULL;
}

/*
 * Layers of the root, topmost first: "lowerdir=A:B", or "lowerdir+=A,lowerdir+=B". Docker puts one
 * of its own for each container on top.
 */
static bool image_of_options(const char *at, const char *end, uint64_t *ret_hash)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	size_t n = 0, taken = 0;

	while (at < end) {
		size_t len = strcspn(at, ",\n"), skip = 0;

		if (strncmp(at, "lowerdir=", 9) == 0)
			skip = 9;
		else if (strncmp(at, "lowerdir+=", 10) == 0)
			skip = 10;
		for (const char *dir = at + skip; skip && dir < at + len; n++) {
			const char *colon = memchr(dir, ':', (size_t)(at + len - dir));
			size_t dir_len = (size_t)((colon ? colon : at + len) - dir);

			if (n > 0 || !memmem(dir, dir_len, "/overlay2/", 10)) {
				hash = image_hash(hash, dir, dir_len);
				hash = image_hash(hash, ":", 1);
				taken++;
			}
			dir += dir_len + 1;
		}
		at += len + 1;
	}
	*ret_hash = hash;
	return taken > 0;
}

/* ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE OPTIONS */
static bool image_of_line(const char *line, const char *end, uint64_t *ret_hash)
{
	const char *at = line;
	const char *dash;

	for (int i = 0; i < 4 && at; i++)
		at = field_next(at, end);
	if (!at || strncmp(at, "/ ", 2) != 0)
		return false;
	dash = memmem(at, (size_t)(end - at), " - overlay ", 11);
	at = dash ? field_next(dash + 11, end) : NULL;
	return at && image_of_options(at, end, ret_hash);
}

void proc_info_parse_mounts(struct proc_info *info, const char *text)
{
	uint64_t hash;

	info->image[0] = 0;
	while (*text) {
		size_t n = strcspn(text, "\n");

		/* What was mounted last lies on top. */
		if (image_of_line(text, text + n, &hash))
			(void)snprintf(info->image, sizeof(info->image), "image %012" PRIx64,
				       hash & (((uint64_t)1 << 48) - 1));
		text += n + (text[n] == '\n');
	}
}

/* --- processes that have exited -------------------------------------------------------------- */

/* The path of a cgroup's directory; false if it is gone as well. */
static bool cgroup_find(const char *mount, uint64_t inode, char *dst, size_t cap)
{
	union {
		struct file_handle head;
		char room[sizeof(struct file_handle) + sizeof(inode)];
	} handle = {.head = {.handle_bytes = sizeof(inode), .handle_type = CGROUP_HANDLE}};
	_cleanup_close_ int root = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = -1;
	char link[64];
	ssize_t n;

	memcpy(handle.head.f_handle, &inode, sizeof(inode));
	if (root >= 0)
		fd = open_by_handle_at(root, &handle.head, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, dst, cap - 1);
	if (n < (ssize_t)strlen(mount) || (size_t)n >= cap - 1 ||
	    memcmp(dst, mount, strlen(mount)) != 0)
		return false;
	dst[n] = 0;
	return true;
}

static bool info_read_cgroup_of(struct proc_info *info, uint64_t inode)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
					     "/sys/fs/cgroup/memory"};
	char path[4096], text[4200];

	for (size_t i = 0; inode && i < ARRAY_SIZE(mounts); i++) {
		if (!cgroup_find(mounts[i], inode, path, sizeof(path)))
			continue;
		(void)snprintf(text, sizeof(text), "0::%s\n", path + strlen(mounts[i]));
		proc_info_parse_cgroup(info, text);
		return true;
	}
	return false;
}

void proc_info_of_exited(pid_t pid, const char *comm, uid_t uid, uint64_t cgroup,
			 struct proc_info *ret_info)
{
	struct proc_info info = {.id.pid = pid, .uid = uid};

	proc_text_copy(info.comm, sizeof(info.comm), view_of(comm, strnlen(comm, 16)));
	/* Root inside a container is not root outside. */
	if (!info_read_cgroup_of(&info, cgroup) && uid == 0)
		info.uid = PROC_UID_UNKNOWN;
	proc_info_name_service(&info);
	*ret_info = info;
}
