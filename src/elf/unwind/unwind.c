/*
 * src/elf/unwind/unwind.c: finds a file's unwind information, and compiles its functions in address
 * order; see unwind.h.
 */
#include "elf/unwind/unwind.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/unwind/eh_frame.h"

/* Per file; the largest browsers have a quarter of it. */
#define UNWIND_MAX_BYTES ((uint64_t)64 << 20)
/* If a part of it can be found without reading the rest. */
#define UNWIND_MAX_INDEXED_BYTES ((uint64_t)1 << 30)
#define EH_FRAME_HDR_BYTES 32
/* Damaged functions between two calls of the sink, which has no rows of them. */
#define UNWIND_BATCH 1024

void elf_unwind_table_release(struct elf_unwind_table *table)
{
	free(table->rows);
	free(table->starts);
	*table = (struct elf_unwind_table){0};
}

static bool place_by_section(const struct elf_image *image, const char *name,
			     struct elf_eh_section *ret)
{
	const struct elf_section *s = elf_image_section(image, name);

	if (!s || s->type == SHT_NOBITS || s->size == 0 || (s->flags & SHF_COMPRESSED))
		return false;
	*ret = (struct elf_eh_section){
		.image = image, .off = s->offset, .size = s->size, .vaddr = s->addr};
	return true;
}

/*
 * Without section headers. PT_GNU_EH_FRAME shows .eh_frame_hdr:
 *
 *   version u8 = 1 | encodings of the address, of a count, of a table, u8 each | the address ...
 */
static bool place_by_segment(const struct elf_image *image, struct elf_eh_section *ret)
{
	uint8_t bytes[EH_FRAME_HDR_BYTES];
	struct elf_eh_cursor c = {.pos = 4};
	uint64_t addr;

	for (size_t i = 0; i < image->n_segments && !c.bytes.len; i++) {
		const struct elf_segment *s = &image->segments[i];
		size_t len = s->filesz < sizeof(bytes) ? s->filesz : sizeof(bytes);

		if (s->type == PT_GNU_EH_FRAME && elf_image_read(image, s->offset, bytes, len) == 0)
			c = (struct elf_eh_cursor){
				.bytes = view_of(bytes, len), .vaddr = s->vaddr, .pos = 4};
	}
	if (c.bytes.len < 4 || bytes[0] != 1)
		return false;
	addr = elf_eh_address(&c, bytes[1]);
	if (c.bad)
		return false;
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type != PT_LOAD || addr < s->vaddr || addr - s->vaddr >= s->filesz)
			continue;
		/* Only its last entry tells how long it is. */
		*ret = (struct elf_eh_section){
			.image = image,
			.off = s->offset + (addr - s->vaddr),
			.size = s->filesz - (addr - s->vaddr),
			.vaddr = addr,
			.ends_at_0 = true,
		};
		if (ret->size > UNWIND_MAX_INDEXED_BYTES)
			ret->size = UNWIND_MAX_INDEXED_BYTES;
		return true;
	}
	return false;
}

static void text_range(const struct elf_image *image, uint64_t *ret_lo, uint64_t *ret_hi)
{
	uint64_t lo = UINT64_MAX, hi = 0, end;

	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X) ||
		    __builtin_add_overflow(s->vaddr, s->memsz, &end))
			continue;
		lo = s->vaddr < lo ? s->vaddr : lo;
		hi = end > hi ? end : hi;
	}
	*ret_lo = lo;
	*ret_hi = hi;
}

static int compile_pause(const struct elf_unwind_builder *b)
{
	return b->sink ? b->sink->rows(b->sink->context, NULL, 0) : 0;
}

/* The rows of all functions; the rest are gaps. */
static int compile_rows(struct elf_eh_frame *f, struct elf_unwind_builder *b)
{
	static const struct elf_unwind_rule gap = {.cfa = ELF_UNWIND_NONE};

	for (size_t i = 0; i < f->n_fdes; i++) {
		const struct elf_eh_place *next = i + 1 < f->n_fdes ? &f->fdes[i + 1] : NULL;
		struct elf_eh_fde fde;
		uint64_t end;
		int r = -EBADMSG;

		/*
		 * If two start at the same address, one is enough; if two overlap, each keeps its
		 * start.
		 */
		if (!next || next->start != f->fdes[i].start)
			r = elf_eh_frame_fde(f, &f->fdes[i], &fde);
		if (r == -EBADMSG) {
			r = ++b->table.n_damaged % UNWIND_BATCH == 0 ? compile_pause(b) : 0;
			if (r < 0)
				return r;
			continue;
		}
		end = r == 0 ? fde.start + fde.size : 0;
		if (next && f->section.lo + next->start < end)
			end = f->section.lo + next->start;
		if (r == 0)
			r = elf_unwind_builder_start(b, fde.start);
		if (r == 0)
			r = elf_eh_program_rows(&fde, end, b);
		if (r == 0)
			r = elf_unwind_builder_row(b, end, gap);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The search table spares reading the rest, if only a part is wanted. */
static int find_functions(struct elf_eh_frame *f, const struct elf_unwind_range *range,
			  const struct elf_unwind_sink *sink)
{
	struct elf_eh_section *s = &f->section;
	int r = range && !s->is_debug ? elf_eh_frame_load_indexed(f) : -ENOENT;

	if (r != -ENOENT)
		return r;
	f->n_fdes = 0;
	if (s->ends_at_0)
		s->size = MIN(s->size, UNWIND_MAX_BYTES);
	return s->size > UNWIND_MAX_BYTES ? -E2BIG : elf_eh_frame_load(f, sink);
}

/* Adds nothing if the section has no functions. */
static int compile_section(const struct elf_eh_section *section,
			   const struct elf_unwind_range *range, struct elf_unwind_builder *b,
			   struct err *err)
{
	_cleanup_(elf_eh_frame_release) struct elf_eh_frame f = {.section = *section};
	uint64_t max = range && !section->is_debug ? UNWIND_MAX_INDEXED_BYTES : UNWIND_MAX_BYTES;
	uint8_t last;
	int r;

	if (section->size > max && !section->ends_at_0)
		return err_set(err, -E2BIG, "%llu bytes of unwind information; the limit is %llu",
			       (unsigned long long)section->size, (unsigned long long)max);
	r = elf_image_read(section->image, section->off + section->size - 1, &last, 1);
	if (r < 0)
		return err_set(err, r, "damaged ELF file: its unwind information is truncated");
	text_range(section->image, &f.section.lo, &f.section.hi);
	f.section.from = range ? range->from : 0;
	f.section.to = range ? range->to : UINT64_MAX;
	r = find_functions(&f, range, b->sink);
	if (r == 0) {
		b->table.n_damaged += f.n_damaged;
		r = compile_rows(&f, b);
	}
	if (r == -E2BIG)
		return err_set(err, r, "unwind information exceeds sonde's limits");
	if (r == -ENOMEM)
		return err_oom(err);
	return r < 0 ? err_set(err, r, "cannot store the unwind information") : 0;
}

int elf_unwind_build(const struct elf_image *image, const struct elf_unwind_range *range,
		     struct elf_unwind_builder *b, struct err *err)
{
	struct elf_eh_section section;
	bool found = false;
	int r = 0;

	if (image->machine != EM_X86_64)
		return err_set(err, -ENOTSUP,
			       "unwind information is supported for x86-64 only, not machine %u",
			       image->machine);
	if (place_by_section(image, ".eh_frame", &section) || place_by_segment(image, &section)) {
		found = true;
		r = compile_section(&section, range, b, err);
	}
	if (r == 0 && b->table.n_starts == 0 && place_by_section(image, ".debug_frame", &section)) {
		section.is_debug = true;
		found = true;
		r = compile_section(&section, range, b, err);
	}
	if (r < 0)
		return r;
	return found ? 0 : err_set(err, -ENOENT, "the file has no unwind information");
}

int elf_unwind_stream(const struct elf_image *image, const struct elf_unwind_range *range,
		      const struct elf_unwind_sink *sink, struct err *err)
{
	_cleanup_(elf_unwind_builder_release) struct elf_unwind_builder b = {.sink = sink};
	int r = elf_unwind_build(image, range, &b, err);

	if (r < 0)
		return r;
	r = elf_unwind_builder_drain(&b);
	return r < 0 ? err_set(err, r, "cannot store the unwind information") : 0;
}
