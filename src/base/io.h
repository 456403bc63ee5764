/* src/base/io.h: whole files in and out, with limits. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends everything the descriptor gives to buf, up to buf's maximum (-E2BIG). */
int io_read_all(int fd, struct buf *buf);
/* The same for a path relative to a directory (AT_FDCWD for none). The error names the path. */
int io_read_file(int dirfd, const char *path, struct buf *buf, struct err *err);
/*
 * A file that is being written: through a temporary file beside it and a rename, so that readers
 * see the old or the new one. Its rights and a symlink to it stay. What is no regular file (a
 * device, a pipe) is written in place.
 */
struct io_file {
	int fd;
	const char *path; /* borrowed, for sentences */
	char *target;	  /* what tmp will be renamed to; NULL in place */
	char *tmp;
};
int io_file_create(const char *path, struct io_file *ret_file, struct err *err);
int io_file_append(struct io_file *file, struct view data, struct err *err);
int io_file_commit(struct io_file *file, struct err *err);
void io_file_abort(struct io_file *file); /* nothing after a commit */

/* All of that with one piece of data. */
int io_write_file(const char *path, struct view data, struct err *err);
/* Reads len bytes at off unless the file ends first; the number read, or -errno. */
ssize_t io_pread_full(int fd, void *dst, size_t len, uint64_t off);
int io_write_full(int fd, const void *data, size_t len);
