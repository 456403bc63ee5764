/*
 * src/java/jfr/source.h: bytes by offset: of a file, or of the data fed so far.
 *
 * Files are read with pread through a window, not mapped: truncating one is then an error, not a
 * signal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/view.h"

struct java_jfr_source {
	int fd;	       /* owned; -1 for fed bytes */
	uint64_t size; /* available bytes, as of the last refresh */
	uint64_t from; /* offset of the window, or of the fed bytes still here */
	struct buf bytes;
};

/* Takes the descriptor; -1 for bytes to be fed. max: how many are kept in memory. */
void java_jfr_source_init_take(struct java_jfr_source *s, int fd, size_t max);
void java_jfr_source_release(struct java_jfr_source *s);
/* Updates the size of the file, and forgets what was read. */
int java_jfr_source_refresh(struct java_jfr_source *s, struct err *err);
/*
 * All bytes in memory starting at off, at least len: valid until the next call. -EBADMSG if they do
 * not exist, -E2BIG.
 */
int java_jfr_source_view(struct java_jfr_source *s, uint64_t off, size_t len, struct view *ret_view,
			 struct err *err);
/* For fed bytes only. */
int java_jfr_source_feed(struct java_jfr_source *s, struct view bytes, struct err *err);
void java_jfr_source_forget(struct java_jfr_source *s, uint64_t before);
