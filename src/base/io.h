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
/* Writes through a temporary file beside it and a rename: readers see the old or the new file. */
int io_write_file(const char *path, struct view data, struct err *err);
/* Reads len bytes at off unless the file ends first; the number read, or -errno. */
ssize_t io_pread_full(int fd, void *dst, size_t len, uint64_t off);
int io_write_full(int fd, const void *data, size_t len);
