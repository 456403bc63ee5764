/* src/base/io.c: see io.h. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

#define IO_CHUNK ((size_t)16 << 10)

int io_read_all(int fd, struct buf *buf)
{
	size_t max = buf->max ? buf->max : BUF_DEFAULT_MAX;

	for (;;) {
		size_t room = MIN(IO_CHUNK, max - buf->len);
		int r = buf_reserve(buf, room);
		char beyond;
		ssize_t n;

		if (r < 0)
			return r;
		/* Full: either the file ends exactly here, or it is too large. */
		n = room ? read(fd, buf->data + buf->len, room) : read(fd, &beyond, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if (room == 0)
			return -E2BIG;
		buf->len += (size_t)n;
	}
}

int io_read_file(int dirfd, const char *path, struct buf *buf, struct err *err)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	r = io_read_all(fd, buf);
	if (r == -E2BIG)
		return err_set(err, r, "%s is larger than the limit of %zu bytes", path,
			       buf->max ? buf->max : BUF_DEFAULT_MAX);
	if (r < 0)
		return err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	return 0;
}

int io_write_full(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A new file next to target, with the mode of the old one or the default of umask. */
static int io_file_create_beside(struct io_file *file, const struct stat *old)
{
	for (unsigned int i = 0; i < 100; i++) {
		_cleanup_free_ char *tmp = NULL;

		if (asprintf(&tmp, "%s.%d-%u", file->target, (int)getpid(), i) < 0) {
			tmp = NULL;
			return -ENOMEM;
		}
		file->fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (file->fd < 0 && errno == EEXIST)
			continue;
		if (file->fd < 0)
			return -errno;
		file->tmp = TAKE_PTR(tmp);
		return old && fchmod(file->fd, old->st_mode & 07777) < 0 ? -errno : 0;
	}
	return -EEXIST;
}

static int io_file_open(struct io_file *file)
{
	struct stat st;
	bool exists = stat(file->path, &st) == 0;

	if (exists && S_ISDIR(st.st_mode))
		return -EISDIR;
	/* A rename would replace the device or the pipe. */
	if (exists && !S_ISREG(st.st_mode)) {
		file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
		return file->fd < 0 ? -errno : 0;
	}
	file->target = exists ? realpath(file->path, NULL) : strdup(file->path);
	if (!file->target)
		return -errno;
	return io_file_create_beside(file, exists ? &st : NULL);
}

int io_file_create(const char *path, struct io_file *ret_file, struct err *err)
{
	struct io_file file = {.fd = -1, .path = path};
	int r = io_file_open(&file);

	if (r < 0) {
		io_file_abort(&file);
		return err_set(err, r, "cannot write %s: %s", path, strerror(-r));
	}
	*ret_file = file;
	return 0;
}

int io_file_append(struct io_file *file, struct view data, struct err *err)
{
	int r = io_write_full(file->fd, data.data, data.len);

	return r < 0 ? err_set(err, r, "cannot write %s: %s", file->path, strerror(-r)) : 0;
}

int io_file_commit(struct io_file *file, struct err *err)
{
	int r = file->tmp && rename(file->tmp, file->target) < 0 ? -errno : 0;

	if (r == 0) {
		free(file->tmp);
		file->tmp = NULL;
	}
	io_file_abort(file);
	return r < 0 ? err_set(err, r, "cannot write %s: %s", file->path, strerror(-r)) : 0;
}

void io_file_abort(struct io_file *file)
{
	if (file->tmp)
		(void)unlink(file->tmp);
	closep(&file->fd);
	free(file->tmp);
	free(file->target);
	file->fd = -1;
	file->tmp = file->target = NULL;
}

static int io_make_private(const struct io_file *file, struct err *err)
{
	if (fchmod(file->fd, 0600) < 0 || fdatasync(file->fd) < 0)
		return err_set(err, -errno, "cannot write %s: %s", file->path, strerror(errno));
	return 0;
}

static int io_write_all(const char *path, struct view data, bool private, struct err *err)
{
	struct io_file file;
	int r = io_file_create(path, &file, err);

	if (r < 0)
		return r;
	r = io_file_append(&file, data, err);
	if (r == 0 && private)
		r = io_make_private(&file, err);
	if (r < 0) {
		io_file_abort(&file);
		return r;
	}
	return io_file_commit(&file, err);
}

int io_write_file(const char *path, struct view data, struct err *err)
{
	return io_write_all(path, data, false, err);
}

int io_write_private(const char *path, struct view data, struct err *err)
{
	return io_write_all(path, data, true, err);
}

static ssize_t (*io_path_reader)(int fd, void *dst, size_t len, uint64_t off);

void io_set_path_reader(ssize_t (*pread)(int fd, void *dst, size_t len, uint64_t off))
{
	io_path_reader = pread;
}

static ssize_t io_pread_some(int fd, void *dst, size_t len, uint64_t off)
{
	ssize_t n;

	do
		n = pread(fd, dst, len, (off_t)off);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EBADF && io_path_reader)
		return io_path_reader(fd, dst, len, off);
	return n < 0 ? -errno : n;
}

ssize_t io_pread_full(int fd, void *dst, size_t len, uint64_t off)
{
	size_t done = 0;

	if (off > INT64_MAX)
		return -EINVAL;
	while (done < len) {
		ssize_t n = io_pread_some(fd, (char *)dst + done, len - done, off + done);

		if (n < 0)
			return done ? (ssize_t)done : n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int io_stat(int fd, struct stat *ret_stat)
{
	struct statx s;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &s) < 0)
		return -errno;
	*ret_stat = (struct stat){
		.st_dev = makedev(s.stx_dev_major, s.stx_dev_minor),
		.st_ino = s.stx_ino,
		.st_mode = s.stx_mode,
		.st_nlink = s.stx_nlink,
		.st_uid = s.stx_uid,
		.st_gid = s.stx_gid,
		.st_size = (off_t)s.stx_size,
		.st_mtim = {.tv_sec = s.stx_mtime.tv_sec, .tv_nsec = s.stx_mtime.tv_nsec},
		.st_ctim = {.tv_sec = s.stx_ctime.tv_sec, .tv_nsec = s.stx_ctime.tv_nsec},
	};
	return 0;
}
