/* src/base/gzip.h: compresses and unpacks gzip in memory, in pieces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"

struct gzip_writer; /* opaque */

/* Appends to out, borrowed until the writer is freed. Equal input gives equal output. */
int gzip_writer_new(struct buf *out, struct gzip_writer **ret_writer, struct err *err);
int gzip_writer_write(struct gzip_writer *w, struct view data);
int gzip_writer_finish(struct gzip_writer *w);
void gzip_writer_free(struct gzip_writer *w); /* NULL is fine */
DEFINE_CLEANUP(struct gzip_writer, gzip_writer_free)

bool gzip_is_packed(struct view data);
/*
 * Appends the contents of all members of a gzip file. -EBADMSG for damaged or truncated input,
 * -E2BIG at out's maximum.
 */
int gzip_unpack(struct view data, struct buf *out, struct err *err);
