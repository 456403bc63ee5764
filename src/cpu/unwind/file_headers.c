/* src/cpu/unwind/file_headers.c: see file_headers.h. */
#include "cpu/unwind/file_headers.h"

#include <elf.h>

#include "base/cleanup.h"
#include "cpu/bpf/shared.h"

#define MAPPING_PAGE 4096U
/* Tables of smaller files are loaded as a whole. */
#define WHOLE_MAX_PAGES (UINT64_C(2) * CPU_SAMPLER_PART_PAGES)
/* 2 GB of code: what relative addresses reach. */
#define PARTS_MAX UINT64_C(64)

void cpu_file_headers_read(const struct elf_image *image, struct cpu_file_headers *ret_headers)
{
	struct cpu_file_headers *h = ret_headers;

	*h = (struct cpu_file_headers){0};
	for (size_t i = 0; i < image->n_segments && h->n_segments < CPU_FILE_SEGMENTS_MAX; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X))
			h->segments[h->n_segments++] = (struct cpu_file_segment){
				.offset = s->offset,
				.size = s->filesz,
				.vaddr = s->vaddr,
			};
	}
}

uint64_t cpu_file_headers_bias(const struct cpu_file_headers *h, const struct proc_map *map)
{
	/* Round down: mappings start at pages. The vdso is mapped whole, with offset 0. */
	for (size_t i = 0; i < h->n_segments; i++) {
		const struct cpu_file_segment *s = &h->segments[i];
		uint64_t first = s->offset & ~(uint64_t)(MAPPING_PAGE - 1);

		if (map->offset >= first && map->offset < s->offset + s->size)
			return map->start - (s->vaddr - s->offset + map->offset);
	}
	return map->start - map->offset;
}

uint32_t cpu_file_headers_parts(const struct cpu_file_headers *h, uint64_t *ret_first_page)
{
	uint64_t lo = UINT64_MAX, hi = 0, n_pages;

	for (size_t i = 0; i < h->n_segments; i++) {
		uint64_t end;

		if (__builtin_add_overflow(h->segments[i].vaddr, h->segments[i].size, &end))
			return 0;
		lo = MIN(lo, h->segments[i].vaddr);
		hi = MAX(hi, end);
	}
	if (lo >= hi)
		return 0;
	lo >>= CPU_SAMPLER_PAGE_BITS;
	n_pages = ((hi - 1) >> CPU_SAMPLER_PAGE_BITS) - lo + 1;
	if (n_pages <= WHOLE_MAX_PAGES || n_pages > PARTS_MAX * CPU_SAMPLER_PART_PAGES)
		return 0;
	*ret_first_page = lo;
	return (uint32_t)((n_pages + CPU_SAMPLER_PART_PAGES - 1) >> CPU_SAMPLER_PART_BITS);
}
