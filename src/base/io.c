/* src/base/io.c: see io.h. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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
		/* Full: the file may end just here, or be too large. */
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

/* A device or a pipe (/dev/stdout, a FIFO) is written in place; a rename would replace it. */
static int io_write_in_place(const char *path, struct view data)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : io_write_full(fd, data.data, data.len);
}

/* A new file beside path, with the rights of the old one or those that umask leaves. */
static int io_create_beside(const char *path, const struct stat *old, char **ret_tmp)
{
	for (unsigned int i = 0; i < 100; i++) {
		_cleanup_free_ char *tmp = NULL;
		_cleanup_close_ int fd = -1;

		if (asprintf(&tmp, "%s.%d-%u", path, (int)getpid(), i) < 0) {
			tmp = NULL;
			return -ENOMEM;
		}
		fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -errno;
		if (old && fchmod(fd, old->st_mode & 07777) < 0) {
			int r = -errno;

			(void)unlink(tmp);
			return r;
		}
		*ret_tmp = TAKE_PTR(tmp);
		return TAKE_FD(fd);
	}
	return -EEXIST;
}

static int io_replace(const char *path, const struct stat *old, struct view data)
{
	_cleanup_free_ char *tmp = NULL;
	_cleanup_close_ int fd = io_create_beside(path, old, &tmp);
	int r;

	if (fd < 0)
		return fd;
	r = io_write_full(fd, data.data, data.len);
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(tmp);
	return r;
}

int io_write_file(const char *path, struct view data, struct err *err)
{
	_cleanup_free_ char *target = NULL;
	struct stat st;
	int r;

	if (stat(path, &st) < 0) {
		r = io_replace(path, NULL, data);
	} else if (!S_ISREG(st.st_mode)) {
		r = S_ISDIR(st.st_mode) ? -EISDIR : io_write_in_place(path, data);
	} else {
		/* A symlink stays one: the file that it names is replaced. */
		target = realpath(path, NULL);
		r = target ? io_replace(target, &st, data) : -errno;
	}
	return r < 0 ? err_set(err, r, "cannot write %s: %s", path, strerror(-r)) : 0;
}

ssize_t io_pread_full(int fd, void *dst, size_t len, uint64_t off)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)dst + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return done ? (ssize_t)done : -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}
