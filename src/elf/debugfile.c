/* src/elf/debugfile.c: see debugfile.h. */
#include "elf/debugfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Checksumming more than this costs more than names are worth. */
#define DEBUG_MAX_CHECKED_BYTES ((uint64_t)256 << 20)
#define DEBUG_CHUNK ((size_t)64 << 10)
#define DEBUG_BUILD_ID_CHARS 129

/*
 * A build id is quickly forged, so it proves no right to read: what comes of a debug file is shown
 * as names of the target's.
 */
static bool debug_is_everybodys(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IROTH);
}

/* relative has no "..". Follows links in the machine's directory, but not procfs magic links. */
static int debug_open(const char *root, const char *relative, struct elf_image **ret_image)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

	if (dir < 0)
		return -ENOENT;
	fd = (int)syscall(SYS_openat2, dir, relative, &how, sizeof(how));
	if (fd < 0 || !debug_is_everybodys(fd))
		return -ENOENT;
	return elf_image_open_fd(fd, ret_image, NULL) < 0 ? -ENOENT : 0;
}

static bool debug_same_build_id(const struct elf_image *image, const char *id)
{
	char other[DEBUG_BUILD_ID_CHARS];

	return id[0] && elf_image_build_id(image, other, sizeof(other)) && strcmp(other, id) == 0;
}

static bool debug_leads_up(const char *path)
{
	size_t len = strlen(path);

	return strstr(path, "/../") || strncmp(path, "../", 3) == 0 ||
	       (len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

/* ROOT/.build-id/ab/cdef0123.debug */
static int debug_by_build_id(const char *root, const char *id, struct elf_image **ret_image)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	char path[DEBUG_BUILD_ID_CHARS + 32];

	if (strlen(id) < 4)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), ".build-id/%.2s/%s.debug", id, id + 2);
	if (debug_open(root, path, &image) < 0 || !debug_same_build_id(image, id))
		return -ENOENT;
	*ret_image = TAKE_PTR(image);
	return 0;
}

/* The section: a file name with its NUL, zeros up to a multiple of 4, the checksum. */
static int debug_read_link(const struct elf_image *image, char *name, size_t cap, uint32_t *ret_crc)
{
	const struct elf_section *section = elf_image_section(image, ".gnu_debuglink");
	uint8_t bytes[NAME_MAX + 9];
	struct view all, text;

	if (!section || section->type == SHT_NOBITS || section->size > sizeof(bytes) ||
	    elf_image_read(image, section->offset, bytes, section->size) < 0)
		return -ENOENT;
	all = view_of(bytes, section->size);
	if (!view_cstr(all, 0, &text) || text.len == 0 || text.len >= cap ||
	    memchr(text.data, '/', text.len) ||
	    !view_u32(all, (text.len + 4) & ~(size_t)3, ret_crc))
		return -ENOENT;
	memcpy(name, text.data, text.len);
	name[text.len] = 0;
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? -ENOENT : 0;
}

static bool debug_crc_is(const struct elf_image *image, uint32_t wanted)
{
	_cleanup_free_ uint8_t *chunk = malloc(DEBUG_CHUNK);
	uLong crc = crc32(0, NULL, 0);
	struct stat st;

	if (!chunk || io_stat(elf_image_fd(image), &st) < 0 ||
	    (uint64_t)st.st_size > DEBUG_MAX_CHECKED_BYTES)
		return false;
	for (uint64_t off = 0; off < (uint64_t)st.st_size;) {
		ssize_t n = io_pread_full(elf_image_fd(image), chunk, DEBUG_CHUNK, off);

		if (n <= 0)
			return false;
		crc = crc32(crc, chunk, (uInt)n);
		off += (uint64_t)n;
	}
	return crc == wanted;
}

/* ROOT/usr/bin/name for /usr/bin/program. If the build id matches, skips the checksum. */
static int debug_by_link(const char *root, const char *path, const struct elf_image *stripped,
			 const char *id, struct elf_image **ret_image)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	char name[NAME_MAX + 1], relative[PATH_MAX];
	const char *slash = strrchr(path, '/');
	uint32_t crc;
	int n;

	if (path[0] != '/' || debug_leads_up(path) ||
	    debug_read_link(stripped, name, sizeof(name), &crc) < 0)
		return -ENOENT;
	n = snprintf(relative, sizeof(relative), ".%.*s/%s", (int)(slash - path), path, name);
	if (n < 0 || (size_t)n >= sizeof(relative) || debug_open(root, relative, &image) < 0)
		return -ENOENT;
	if (!debug_same_build_id(image, id) && !debug_crc_is(image, crc))
		return -ENOENT;
	*ret_image = TAKE_PTR(image);
	return 0;
}

int elf_debugfile_open(const char *root, const char *path, const struct elf_image *image,
		       struct elf_image **ret_image, struct err *err)
{
	char id[DEBUG_BUILD_ID_CHARS];

	if (!elf_image_build_id(image, id, sizeof(id)))
		id[0] = 0;
	if (debug_by_build_id(root, id, ret_image) == 0 ||
	    debug_by_link(root, path, image, id, ret_image) == 0)
		return 0;
	return err_set(err, -ENOENT, "no debug file for %s below %s", path, root);
}

int elf_debugfile_open_alternate(const char *root, const char *path, const char *build_id,
				 struct elf_image **ret_image, struct err *err)
{
	const char *inside = strstr(path, ".dwz/");

	if (debug_by_build_id(root, build_id, ret_image) == 0)
		return 0;
	if (inside && !debug_leads_up(inside) && debug_open(root, inside, ret_image) == 0)
		return 0;
	return err_set(err, -ENOENT, "no shared debug file %s below %s", path, root);
}
