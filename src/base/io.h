/* src/base/io.h: reads and writes whole files, with limits. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends everything read from the descriptor to buf, up to its maximum (-E2BIG). */
int io_read_all(int fd, struct buf *buf);
/* The same for a path relative to a directory (AT_FDCWD for none). The error names the path. */
int io_read_file(int dirfd, const char *path, struct buf *buf, struct err *err);
/*
 * A file being written: through a temporary file next to it and a rename, so readers see either the
 * old or the new one. Its mode, and a symlink to it, are preserved. Devices and pipes are written
 * in place.
 */
struct io_file {
	int fd;
	const char *path; /* borrowed, for sentences */
	char *target;	  /* what tmp is renamed to; NULL if written in place */
	char *tmp;
};
int io_file_create(const char *path, struct io_file *ret_file, struct err *err);
int io_file_append(struct io_file *file, struct view data, struct err *err);
int io_file_commit(struct io_file *file, struct err *err);
void io_file_abort(struct io_file *file); /* no-op after a commit */

/* All of the above, for one piece of data. */
int io_write_file(const char *path, struct view data, struct err *err);
/* The same for a file of our own: on disk before it is renamed, and nobody else's to read. */
int io_write_private(const char *path, struct view data, struct err *err);
/* Reads len bytes at off, or up to the end of the file; returns the number read, or -errno. */
ssize_t io_pread_full(int fd, void *dst, size_t len, uint64_t off);
/*
 * Opening or closing some files can hang. Of these we hold a mere path (O_PATH), and
 * io_pread_full() has somebody else read: as pread(2), but returns -errno. Set once, before the
 * first such file.
 */
void io_set_path_reader(ssize_t (*pread)(int fd, void *dst, size_t len, uint64_t off));
/* As fstat(2), from what the kernel knows: the file system is not asked, which could hang. */
int io_stat(int fd, struct stat *ret_stat);
int io_write_full(int fd, const void *data, size_t len);
