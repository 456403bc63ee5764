/*
 * src/elf/dwarf/stream.h: random access to a compressed section (zlib or zstd), by page.
 *
 * The decompressed section is never in memory as a whole. If there is room, pages are kept, each
 * compressed separately. For larger sections, copies of zlib's state are kept along the way, so a
 * page is reached from the nearest one; zstd can only start over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/image.h"

struct elf_dwarf_stream; /* opaque */

/* Compresses and decompresses pages; shared by streams. */
struct elf_dwarf_squeeze; /* opaque */

struct elf_dwarf_squeeze *elf_dwarf_squeeze_new(size_t page);
void elf_dwarf_squeeze_free(struct elf_dwarf_squeeze *q); /* NULL is fine */
size_t elf_dwarf_squeeze_memory(const struct elf_dwarf_squeeze *q);

enum elf_dwarf_stream_kind {
	ELF_DWARF_STREAM_ZLIB,
	ELF_DWARF_STREAM_ZSTD,
};

struct elf_dwarf_stream_options {
	enum elf_dwarf_stream_kind kind;
	uint64_t off; /* of the compressed bytes in the image */
	uint64_t len;
	uint64_t size;	  /* the claimed decompressed size */
	size_t page;	  /* bytes per request */
	size_t max_bytes; /* for pages or states; zlib's own state is not counted */
};

/* Borrows image and squeeze. NULL: out of memory. */
struct elf_dwarf_stream *elf_dwarf_stream_new(const struct elf_image *image,
					      struct elf_dwarf_squeeze *squeeze,
					      const struct elf_dwarf_stream_options *options);
void elf_dwarf_stream_free(struct elf_dwarf_stream *s); /* NULL is fine */

/*
 * The bytes at off, a multiple of the page size; dst has room for a whole page. Adds the bytes
 * decompressed to *work. -EBADMSG for a damaged stream, -E2BIG past limit bytes of work, -ENOMEM.
 */
int elf_dwarf_stream_read(struct elf_dwarf_stream *s, uint64_t off, void *dst, size_t len,
			  uint64_t limit, uint64_t *work);

size_t elf_dwarf_stream_memory(const struct elf_dwarf_stream *s);
