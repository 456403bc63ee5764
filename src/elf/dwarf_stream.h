/*
 * src/elf/dwarf_stream.h: random access to a compressed section (zlib or zstd), a page at a time.
 *
 * The decompressed bytes are never held as a whole. On the way through a zlib stream copies of its
 * state are kept, so that a later page is reached from the nearest one; zstd can only start over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/image.h"

struct dwarf_stream; /* opaque */

enum dwarf_stream_kind {
	DWARF_STREAM_ZLIB,
	DWARF_STREAM_ZSTD,
};

/* The compressed bytes lie at [off, off + len) of the image, which is borrowed. */
struct dwarf_stream *dwarf_stream_new(const struct elf_image *image, enum dwarf_stream_kind kind,
				      uint64_t off, uint64_t len);
void dwarf_stream_free(struct dwarf_stream *s); /* NULL is fine */

/*
 * How many bytes are said to come out, how many are asked for at a time, and the limit for the
 * copies of states.
 */
void dwarf_stream_plan(struct dwarf_stream *s, uint64_t size, size_t page, size_t max_bytes);

/*
 * The bytes at off, a multiple of the page size; dst has room for a whole page. Adds what
 * had to be decompressed to *work.
 * -EBADMSG for a damaged stream, -E2BIG past limit bytes of work, -ENOMEM.
 */
int dwarf_stream_read(struct dwarf_stream *s, uint64_t off, void *dst, size_t len, uint64_t limit,
		      uint64_t *work);

size_t dwarf_stream_memory(const struct dwarf_stream *s);
