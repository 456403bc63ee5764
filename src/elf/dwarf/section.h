/*
 * src/elf/dwarf/section.h: bytes of DWARF sections, compressed or not, through one page cache.
 *
 * The pool also keeps a work budget: everything read, decompressed or decoded is charged to it, so
 * the cost of a forged file is bounded, however its parts refer to one another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/dwarf/stream.h"
#include "elf/image.h"

#define ELF_DWARF_PAGE_BYTES ((size_t)16 << 10)

struct elf_dwarf_page;

struct elf_dwarf_pool {
	struct elf_dwarf_page *pages;
	size_t n_sets;
	size_t n_filled;
	uint64_t clock;
	int64_t credit; /* bytes of work left */
	uint16_t n_sections;
	struct elf_dwarf_squeeze *squeeze; /* NULL until a compressed section is opened */
};

/* At most max_bytes of pages, but never less than a few. */
int elf_dwarf_pool_init(struct elf_dwarf_pool *pool, size_t max_bytes);
void elf_dwarf_pool_release(struct elf_dwarf_pool *pool);
size_t elf_dwarf_pool_memory(const struct elf_dwarf_pool *pool);

/* A zeroed one is a missing section. */
struct elf_dwarf_section {
	const struct elf_image *image;
	struct elf_dwarf_pool *pool;
	struct elf_dwarf_stream *stream; /* NULL: not compressed */
	uint64_t offset;		 /* in the file, if not compressed */
	uint64_t size;			 /* decompressed */
	uint16_t id;			 /* within the pool */
};

/*
 * Finds ".debug_" + name, or its old compressed form ".zdebug_" + name. 0 with an empty section if
 * there is none; stream_bytes limits what random access to a compressed one may keep. -EBADMSG for
 * a damaged header, -ENOTSUP for an unknown compression, -ENOMEM.
 */
int elf_dwarf_section_open(struct elf_dwarf_section *ret, const struct elf_image *image,
			   struct elf_dwarf_pool *pool, const char *name, size_t stream_bytes);
void elf_dwarf_section_close(struct elf_dwarf_section *section);
size_t elf_dwarf_section_memory(const struct elf_dwarf_section *section);

/* All len bytes at off, or -EBADMSG; -E2BIG if the budget is spent; -ENOMEM. */
int elf_dwarf_section_read(struct elf_dwarf_section *section, uint64_t off, void *dst, size_t len);
