/* src/elf/dwarf/section.c: see section.h. */
#include "elf/dwarf/section.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define DWARF_PAGE_WAYS 4
#define DWARF_MIN_SETS 8
/* Larger than any real one; keeps sums of offsets far from overflow. */
#define DWARF_MAX_SECTION_BYTES ((uint64_t)1 << 36)
/* Decompressing is this much cheaper than decoding entries. */
#define DWARF_INFLATE_DISCOUNT 4

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

struct elf_dwarf_page {
	uint64_t number; /* in its section */
	uint64_t used;	 /* by the pool's clock; 0 if empty */
	uint16_t section;
	uint8_t *bytes;
};

int elf_dwarf_pool_init(struct elf_dwarf_pool *pool, size_t max_bytes)
{
	size_t n = max_bytes / ELF_DWARF_PAGE_BYTES / DWARF_PAGE_WAYS;

	*pool = (struct elf_dwarf_pool){.n_sets = MAX(n, DWARF_MIN_SETS)};
	pool->pages = calloc(pool->n_sets * DWARF_PAGE_WAYS, sizeof(*pool->pages));
	return pool->pages ? 0 : -ENOMEM;
}

void elf_dwarf_pool_release(struct elf_dwarf_pool *pool)
{
	for (size_t i = 0; pool->pages && i < pool->n_sets * DWARF_PAGE_WAYS; i++)
		free(pool->pages[i].bytes);
	free(pool->pages);
	elf_dwarf_squeeze_free(pool->squeeze);
	*pool = (struct elf_dwarf_pool){0};
}

size_t elf_dwarf_pool_memory(const struct elf_dwarf_pool *pool)
{
	return pool->n_sets * DWARF_PAGE_WAYS * sizeof(*pool->pages) +
	       pool->n_filled * ELF_DWARF_PAGE_BYTES +
	       (pool->squeeze ? elf_dwarf_squeeze_memory(pool->squeeze) : 0);
}

/* The page, or the least recently used one of its set, with used = 0. */
static struct elf_dwarf_page *dwarf_pool_page(struct elf_dwarf_pool *pool, uint16_t section,
					      uint64_t number)
{
	uint64_t set = hash_u64(number << 8 | section) % pool->n_sets;
	struct elf_dwarf_page *ways = &pool->pages[set * DWARF_PAGE_WAYS], *oldest = ways;

	for (size_t i = 0; i < DWARF_PAGE_WAYS; i++) {
		struct elf_dwarf_page *page = &ways[i];

		if (page->used && page->number == number && page->section == section) {
			page->used = ++pool->clock;
			return page;
		}
		if (page->used < oldest->used)
			oldest = page;
	}
	oldest->used = 0;
	return oldest;
}

static int dwarf_section_load(struct elf_dwarf_section *s, uint64_t number, uint8_t *dst)
{
	uint64_t off = number * ELF_DWARF_PAGE_BYTES, work = 0;
	size_t len = (size_t)MIN(s->size - off, ELF_DWARF_PAGE_BYTES);
	int r;

	if (s->pool->credit <= 0)
		return -E2BIG;
	if (s->stream) {
		r = elf_dwarf_stream_read(s->stream, off, dst, len,
					  (uint64_t)s->pool->credit * DWARF_INFLATE_DISCOUNT,
					  &work);
		s->pool->credit -= (int64_t)(work / DWARF_INFLATE_DISCOUNT);
		return r;
	}
	s->pool->credit -= (int64_t)(len / DWARF_INFLATE_DISCOUNT);
	return elf_image_read(s->image, s->offset + off, dst, len);
}

static int dwarf_section_page(struct elf_dwarf_section *s, uint64_t number,
			      const uint8_t **ret_bytes)
{
	struct elf_dwarf_page *page = dwarf_pool_page(s->pool, s->id, number);
	int r;

	if (page->used) {
		*ret_bytes = page->bytes;
		return 0;
	}
	if (!page->bytes) {
		page->bytes = malloc(ELF_DWARF_PAGE_BYTES);
		if (!page->bytes)
			return -ENOMEM;
		s->pool->n_filled++;
	}
	r = dwarf_section_load(s, number, page->bytes);
	if (r < 0)
		return r;
	page->number = number;
	page->section = s->id;
	page->used = ++s->pool->clock;
	*ret_bytes = page->bytes;
	return 0;
}

int elf_dwarf_section_read(struct elf_dwarf_section *s, uint64_t off, void *dst, size_t len)
{
	uint8_t *to = dst;

	if (off > s->size || len > s->size - off)
		return -EBADMSG;
	if (len && s->pool->credit <= 0)
		return -E2BIG;
	while (len) {
		size_t skip = off % ELF_DWARF_PAGE_BYTES, n = MIN(len, ELF_DWARF_PAGE_BYTES - skip);
		const uint8_t *bytes;
		int r = dwarf_section_page(s, off / ELF_DWARF_PAGE_BYTES, &bytes);

		if (r < 0)
			return r;
		memcpy(to, bytes + skip, n);
		s->pool->credit -= (int64_t)n;
		to += n;
		off += n;
		len -= n;
	}
	return 0;
}

/*
 * A compressed section starts with either
 *
 *   SHF_COMPRESSED   type u32 | reserved u32 | size u64 | alignment u64
 *   .zdebug_*        "ZLIB" | size u64, big-endian
 */
struct dwarf_compression {
	enum elf_dwarf_stream_kind kind;
	uint64_t size;
	uint64_t header;
};

static int dwarf_read_chdr(const struct elf_image *image, const struct elf_section *section,
			   struct dwarf_compression *ret)
{
	Elf64_Chdr chdr;

	if (section->size < sizeof(chdr) ||
	    elf_image_read(image, section->offset, &chdr, sizeof(chdr)) < 0)
		return -EBADMSG;
	if (chdr.ch_type != ELFCOMPRESS_ZLIB && chdr.ch_type != ELFCOMPRESS_ZSTD)
		return -ENOTSUP;
	ret->kind =
		chdr.ch_type == ELFCOMPRESS_ZLIB ? ELF_DWARF_STREAM_ZLIB : ELF_DWARF_STREAM_ZSTD;
	ret->size = chdr.ch_size;
	ret->header = sizeof(chdr);
	return 0;
}

static int dwarf_read_zdebug(const struct elf_image *image, const struct elf_section *section,
			     struct dwarf_compression *ret)
{
	uint8_t header[12];
	uint64_t size;

	if (section->size < sizeof(header) ||
	    elf_image_read(image, section->offset, header, sizeof(header)) < 0 ||
	    memcmp(header, "ZLIB", 4) != 0)
		return -EBADMSG;
	memcpy(&size, header + 4, sizeof(size));
	*ret = (struct dwarf_compression){
		.kind = ELF_DWARF_STREAM_ZLIB, .size = be64toh(size), .header = sizeof(header)};
	return 0;
}

static int dwarf_section_open_stream(struct elf_dwarf_section *s, const struct elf_section *section,
				     bool zdebug, size_t stream_bytes)
{
	struct elf_dwarf_stream_options options;
	struct dwarf_compression c;
	int r = zdebug ? dwarf_read_zdebug(s->image, section, &c)
		       : dwarf_read_chdr(s->image, section, &c);

	if (r < 0)
		return r;
	if (c.size > DWARF_MAX_SECTION_BYTES)
		return -EBADMSG;
	if (!s->pool->squeeze)
		s->pool->squeeze = elf_dwarf_squeeze_new(ELF_DWARF_PAGE_BYTES);
	if (!s->pool->squeeze)
		return -ENOMEM;
	options = (struct elf_dwarf_stream_options){
		.kind = c.kind,
		.off = section->offset + c.header,
		.len = section->size - c.header,
		.size = c.size,
		.page = ELF_DWARF_PAGE_BYTES,
		.max_bytes = stream_bytes,
	};
	s->stream = elf_dwarf_stream_new(s->image, s->pool->squeeze, &options);
	if (!s->stream)
		return -ENOMEM;
	s->size = c.size;
	return 0;
}

int elf_dwarf_section_open(struct elf_dwarf_section *ret, const struct elf_image *image,
			   struct elf_dwarf_pool *pool, const char *name, size_t stream_bytes)
{
	struct elf_dwarf_section s = {.image = image, .pool = pool, .id = pool->n_sections++};
	const struct elf_section *section;
	bool zdebug = false;
	char full[64];
	int r = 0;

	(void)snprintf(full, sizeof(full), ".debug_%s", name);
	section = elf_image_section(image, full);
	if (!section) {
		(void)snprintf(full, sizeof(full), ".zdebug_%s", name);
		section = elf_image_section(image, full);
		zdebug = section != NULL;
	}
	/* objcopy --only-keep-debug keeps the program's sections without their contents. */
	if (!section || section->type == SHT_NOBITS) {
		*ret = s;
		return 0;
	}
	if (section->size > DWARF_MAX_SECTION_BYTES || section->offset > DWARF_MAX_SECTION_BYTES)
		return -EBADMSG;
	s.offset = section->offset;
	s.size = section->size;
	if (zdebug || section->flags & SHF_COMPRESSED)
		r = dwarf_section_open_stream(&s, section, zdebug, stream_bytes);
	if (r < 0)
		return r;
	*ret = s;
	return 0;
}

void elf_dwarf_section_close(struct elf_dwarf_section *s)
{
	elf_dwarf_stream_free(s->stream);
	*s = (struct elf_dwarf_section){0};
}

size_t elf_dwarf_section_memory(const struct elf_dwarf_section *s)
{
	return s->stream ? elf_dwarf_stream_memory(s->stream) : 0;
}
