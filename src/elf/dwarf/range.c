/* src/elf/dwarf/range.c: see range.h. */
#include "elf/dwarf/range.h"

#include <errno.h>
#include <stdlib.h>

#include "elf/dwarf/array.h"

void elf_dwarf_ranges_release(struct elf_dwarf_ranges *ranges)
{
	free(ranges->items);
	ranges->items = NULL;
	ranges->n = ranges->cap = 0;
}

/* Omits an empty one. -E2BIG past the maximum, -ENOMEM. */
static int dwarf_ranges_add(struct elf_dwarf_ranges *ranges, uint64_t low, uint64_t high)
{
	int r;

	if (low >= high)
		return 0;
	r = elf_dwarf_array_reserve(&ranges->items, &ranges->cap, ranges->n, sizeof(*ranges->items),
				    ranges->max);
	if (r < 0)
		return r;
	ranges->items[ranges->n++] = (struct elf_dwarf_range){.low = low, .high = high};
	return 0;
}

/* DWARF 2 to 4: pairs of addresses relative to a base; (all ones, base) sets it, (0, 0) ends. */
static int dwarf_ranges_pairs(struct elf_dwarf_ranges *ranges, const struct elf_dwarf_unit *unit,
			      struct elf_dwarf_cursor *c)
{
	uint32_t size = unit->encoding.addr_size;
	uint64_t ones = size == 8 ? UINT64_MAX : UINT32_MAX, base = unit->low_pc;

	while (!elf_dwarf_cursor_done(c)) {
		uint64_t low = elf_dwarf_uint(c, size), high = elf_dwarf_uint(c, size);
		int r;

		if (c->error || (low == 0 && high == 0))
			break;
		if (low == ones) {
			base = high;
			continue;
		}
		r = dwarf_ranges_add(ranges, base + low, base + high);
		if (r < 0)
			return r;
	}
	return 0;
}

struct dwarf_list_state {
	const struct elf_dwarf_unit *unit;
	uint64_t base;
	uint64_t low;
	uint64_t high;
};

static uint64_t dwarf_list_addrx(struct elf_dwarf_cursor *c, const struct elf_dwarf_unit *unit)
{
	uint64_t address = 0;

	if (!elf_dwarf_unit_addrx(unit, elf_dwarf_uleb(c), &address))
		elf_dwarf_cursor_fail(c, -EBADMSG);
	return address;
}

/* One entry of a DWARF 5 list; true if it is a range. */
static bool dwarf_list_entry(struct dwarf_list_state *s, struct elf_dwarf_cursor *c, uint8_t kind)
{
	uint32_t size = s->unit->encoding.addr_size;

	switch (kind) {
	case DW_RLE_base_addressx:
		s->base = dwarf_list_addrx(c, s->unit);
		return false;
	case DW_RLE_base_address:
		s->base = elf_dwarf_uint(c, size);
		return false;
	case DW_RLE_startx_endx:
		s->low = dwarf_list_addrx(c, s->unit);
		s->high = dwarf_list_addrx(c, s->unit);
		return true;
	case DW_RLE_startx_length:
		s->low = dwarf_list_addrx(c, s->unit);
		s->high = s->low + elf_dwarf_uleb(c);
		return true;
	case DW_RLE_offset_pair:
		s->low = s->base + elf_dwarf_uleb(c);
		s->high = s->base + elf_dwarf_uleb(c);
		return true;
	case DW_RLE_start_end:
		s->low = elf_dwarf_uint(c, size);
		s->high = elf_dwarf_uint(c, size);
		return true;
	case DW_RLE_start_length:
		s->low = elf_dwarf_uint(c, size);
		s->high = s->low + elf_dwarf_uleb(c);
		return true;
	default:
		elf_dwarf_cursor_fail(c, -EBADMSG);
		return false;
	}
}

static int dwarf_ranges_list(struct elf_dwarf_ranges *ranges, const struct elf_dwarf_unit *unit,
			     struct elf_dwarf_cursor *c)
{
	struct dwarf_list_state s = {.unit = unit, .base = unit->low_pc};

	while (!elf_dwarf_cursor_done(c)) {
		uint8_t kind = elf_dwarf_u8(c);
		int r = 0;

		if (kind == DW_RLE_end_of_list)
			break;
		if (dwarf_list_entry(&s, c, kind) && !c->error)
			r = dwarf_ranges_add(ranges, s.low, s.high);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The offset of a list in .debug_rnglists; an index refers to a table of offsets at the base. */
static bool dwarf_list_offset(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			      uint64_t *ret)
{
	uint32_t size = unit->encoding.offset_size;
	struct elf_dwarf_section *section = &unit->file->sections[ELF_DWARF_RNGLISTS];
	uint64_t off = 0;

	if (value.form != DW_FORM_rnglistx) {
		*ret = value.number;
		return true;
	}
	if (value.number > section->size / size || unit->rnglists_base > section->size)
		return false;
	if (elf_dwarf_section_read(section, unit->rnglists_base + value.number * size, &off, size) <
	    0)
		return false;
	*ret = unit->rnglists_base + off;
	return off <= section->size;
}

static struct elf_dwarf_cursor *dwarf_ranges_seek(struct elf_dwarf_ranges *ranges,
						  struct elf_dwarf_section *section, uint64_t off)
{
	struct elf_dwarf_cursor *c = &ranges->c;

	if (c->section == section && !c->error)
		elf_dwarf_cursor_seek(c, off);
	else
		elf_dwarf_cursor_init(c, section, off, UINT64_MAX);
	return c;
}

int elf_dwarf_ranges_of(struct elf_dwarf_ranges *ranges, const struct elf_dwarf_unit *unit,
			const struct elf_dwarf_entry *entry)
{
	struct elf_dwarf_value list = entry->values[ELF_DWARF_RANGE_LIST];
	struct elf_dwarf_value last = entry->values[ELF_DWARF_HIGH_PC];
	struct elf_dwarf_section *sections = unit->file->sections;
	uint64_t low, high, off;

	if (list.form && unit->encoding.version >= 5) {
		if (!dwarf_list_offset(unit, list, &off))
			return 0;
		return dwarf_ranges_list(
			ranges, unit,
			dwarf_ranges_seek(ranges, &sections[ELF_DWARF_RNGLISTS], off));
	}
	if (list.form)
		return dwarf_ranges_pairs(
			ranges, unit,
			dwarf_ranges_seek(ranges, &sections[ELF_DWARF_RANGES], list.number));
	if (!last.form || !elf_dwarf_unit_address(unit, entry->values[ELF_DWARF_LOW_PC], &low))
		return 0;
	/* An address, or since DWARF 4 a length. */
	if (!elf_dwarf_unit_address(unit, last, &high))
		high = low + last.number;
	return dwarf_ranges_add(ranges, low, high);
}
