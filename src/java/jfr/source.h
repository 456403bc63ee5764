/*
 * src/java/jfr/source.h: bytes by offset: of a file, or of what was fed so far.
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
	uint64_t size; /* bytes that are there; as of the last refresh */
	uint64_t from; /* offset of the window, or of the fed bytes that are still here */
	struct buf bytes;
};

/* Takes the descriptor; -1 for bytes that will be fed. max: how many lie in memory. */
void java_jfr_source_init_take(struct java_jfr_source *s, int fd, size_t max);
void java_jfr_source_release(struct java_jfr_source *s);
/* Looks how long the file is now, and forgets what was read of it. */
int java_jfr_source_refresh(struct java_jfr_source *s, struct err *err);
/*
 * All that is in memory from off, and at least len bytes: borrowed until the next call. -EBADMSG
 * when they are not there, -E2BIG.
 */
int java_jfr_source_view(struct java_jfr_source *s, uint64_t off, size_t len, struct view *ret_view,
			 struct err *err);
/* Fed bytes only. */
int java_jfr_source_feed(struct java_jfr_source *s, struct view bytes, struct err *err);
void java_jfr_source_forget(struct java_jfr_source *s, uint64_t before);
