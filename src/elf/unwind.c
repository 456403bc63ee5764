/*
 * src/elf/unwind.c: finds the unwind information of a file, and has its functions compiled in the
 * order of their addresses; see unwind.h.
 */
#include "elf/unwind.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/eh_frame.h"

/* Of one file; the largest browsers have a quarter of it. */
#define UNWIND_MAX_BYTES ((uint64_t)64 << 20)
#define EH_FRAME_HDR_BYTES 32

void unwind_table_release(struct unwind_table *table)
{
	free(table->rows);
	free(table->starts);
	*table = (struct unwind_table){0};
}

struct unwind_rule unwind_table_lookup(const struct unwind_table *table, uint64_t vaddr)
{
	size_t lo = 0, hi = table->n_rows;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table->rows[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? table->rows[lo - 1].rule : (struct unwind_rule){.cfa = UNWIND_NONE};
}

uint64_t unwind_table_start(const struct unwind_table *table, uint64_t vaddr)
{
	size_t lo = 0, hi = table->n_starts;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table->starts[mid] <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? table->starts[lo - 1] : 0;
}

/* Where the information lies in the file. */
struct unwind_place {
	uint64_t off;
	uint64_t size;
	struct eh_section section; /* all but its bytes */
};

static bool place_by_section(const struct elf_image *image, const char *name,
			     struct unwind_place *ret)
{
	const struct elf_section *s = elf_image_section(image, name);

	if (!s || s->type == SHT_NOBITS || s->size == 0 || (s->flags & SHF_COMPRESSED))
		return false;
	*ret = (struct unwind_place){
		.off = s->offset,
		.size = s->size,
		.section.vaddr = s->addr,
	};
	return true;
}

/*
 * Without section headers. PT_GNU_EH_FRAME shows .eh_frame_hdr:
 *
 *   version u8 = 1 | encodings of the address, of a count, of a table, u8 each | the address ...
 */
static bool place_by_segment(const struct elf_image *image, struct unwind_place *ret)
{
	uint8_t bytes[EH_FRAME_HDR_BYTES];
	struct eh_cursor c = {.pos = 4};
	struct eh_section hdr = {0};
	uint64_t addr;

	for (size_t i = 0; i < image->n_segments && !hdr.bytes.len; i++) {
		const struct elf_segment *s = &image->segments[i];
		size_t len = s->filesz < sizeof(bytes) ? s->filesz : sizeof(bytes);

		if (s->type == PT_GNU_EH_FRAME && elf_image_read(image, s->offset, bytes, len) == 0)
			hdr = (struct eh_section){.bytes = view_of(bytes, len), .vaddr = s->vaddr};
	}
	c.bytes = hdr.bytes;
	if (hdr.bytes.len < 4 || bytes[0] != 1)
		return false;
	addr = eh_address(&c, &hdr, bytes[1]);
	if (c.bad)
		return false;
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type != PT_LOAD || addr < s->vaddr || addr - s->vaddr >= s->filesz)
			continue;
		/* How long it is only its last entry tells. */
		*ret = (struct unwind_place){
			.off = s->offset + (addr - s->vaddr),
			.size = s->filesz - (addr - s->vaddr),
			.section = {.vaddr = addr, .ends_at_0 = true},
		};
		if (ret->size > UNWIND_MAX_BYTES)
			ret->size = UNWIND_MAX_BYTES;
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

/* The rows of all functions; what no function covers is a gap. */
static int compile_rows(const struct eh_frame *f, struct unwind_builder *b)
{
	static const struct unwind_rule gap = {.cfa = UNWIND_NONE};

	for (size_t i = 0; i < f->n_fdes; i++) {
		const struct eh_fde *fde = &f->fdes[i];
		const struct eh_fde *next = i + 1 < f->n_fdes ? fde + 1 : NULL;
		uint64_t end = fde->start + fde->size;
		int r;

		/* Of two that begin together one is enough; of two that overlap each has its start.
		 */
		if (next && next->start == fde->start) {
			b->table.n_damaged++;
			continue;
		}
		if (next && next->start < end)
			end = next->start;
		r = unwind_builder_start(b, fde->start);
		if (r == 0)
			r = eh_program_rows(f, fde, end, b);
		if (r == 0)
			r = unwind_builder_row(b, end, gap);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Adds nothing when the place holds no function. */
static int compile_place(const struct elf_image *image, const struct unwind_place *place,
			 struct unwind_builder *b, struct err *err)
{
	_cleanup_(eh_frame_release) struct eh_frame f = {.section = place->section};
	_cleanup_free_ uint8_t *bytes = NULL;
	int r;

	if (place->size > UNWIND_MAX_BYTES)
		return err_set(err, -E2BIG, "%llu bytes of unwind information; the limit is %llu",
			       (unsigned long long)place->size,
			       (unsigned long long)UNWIND_MAX_BYTES);
	bytes = malloc(place->size);
	if (!bytes)
		return err_oom(err);
	r = elf_image_read(image, place->off, bytes, place->size);
	if (r < 0)
		return err_set(err, r, "damaged ELF file: its unwind information is cut off");
	f.section.bytes = view_of(bytes, place->size);
	text_range(image, &f.section.lo, &f.section.hi);
	r = eh_frame_load(&f);
	if (r == 0) {
		b->table.n_damaged += f.n_damaged;
		r = compile_rows(&f, b);
	}
	if (r == -E2BIG)
		return err_set(err, r, "more unwind information than sonde is willing to hold");
	return r < 0 ? err_oom(err) : 0;
}

int elf_unwind_compile(const struct elf_image *image, struct unwind_table *ret_table,
		       struct err *err)
{
	_cleanup_(unwind_builder_release) struct unwind_builder b = {0};
	struct unwind_place place;
	bool found = false;
	int r = 0;

	if (image->machine != EM_X86_64)
		return err_set(err, -ENOTSUP,
			       "unwind information is read for x86-64 only, not for machine %u",
			       image->machine);
	if (place_by_section(image, ".eh_frame", &place) || place_by_segment(image, &place)) {
		found = true;
		r = compile_place(image, &place, &b, err);
	}
	if (r == 0 && b.table.n_starts == 0 && place_by_section(image, ".debug_frame", &place)) {
		place.section.is_debug = true;
		found = true;
		r = compile_place(image, &place, &b, err);
	}
	if (r < 0)
		return r;
	if (!found)
		return err_set(err, -ENOENT, "the file has no unwind information");
	unwind_builder_finish(&b, ret_table);
	return 0;
}
