/* src/elf/dwarf/index.c: see index.h. */
#include "elf/dwarf/index.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "elf/dwarf/array.h"
#include "elf/dwarf/range.h"

/* How far back to look for a range that started earlier; in a valid file they do not overlap. */
#define DWARF_INDEX_OVERLAP 16
/* Functions are padded to this many bytes. */
#define DWARF_INDEX_GAP 64
#define DWARF_INDEX_TRIM_EVERY 64

void elf_dwarf_index_release(struct elf_dwarf_index *index)
{
	free(index->items);
	*index = (struct elf_dwarf_index){0};
}

size_t elf_dwarf_index_memory(const struct elf_dwarf_index *index)
{
	return index->cap * sizeof(*index->items);
}

static int dwarf_index_add(struct elf_dwarf_index *index, const struct elf_dwarf_file *file,
			   struct elf_dwarf_index_entry entry)
{
	int r;

	if (entry.low >= entry.high || !elf_dwarf_file_has_code(file, entry.low))
		return 0;
	/* With a section per function, a unit has thousands of ranges, one after another. */
	if (index->n > 0) {
		struct elf_dwarf_index_entry *last = &index->items[index->n - 1];

		if (last->off == entry.off && entry.low >= last->high &&
		    entry.low - last->high < DWARF_INDEX_GAP) {
			last->high = entry.high;
			return 0;
		}
	}
	r = elf_dwarf_array_reserve(&index->items, &index->cap, index->n, sizeof(entry),
				    index->max);
	if (r < 0)
		return r;
	index->items[index->n++] = entry;
	return 0;
}

static int dwarf_index_compare(const void *a, const void *b)
{
	const struct elf_dwarf_index_entry *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

static void dwarf_index_sort(struct elf_dwarf_index *index)
{
	if (index->n)
		qsort(index->items, index->n, sizeof(*index->items), dwarf_index_compare);
}

/*
 * A set of .debug_aranges, for one unit:
 *
 *   length | version u16 | unit | address size u8 | segment size u8 | padding | (start, length) ...
 *
 * The pairs are aligned to their size from the start of the set, and end with (0, 0).
 */
static int dwarf_index_add_set(struct elf_dwarf_index *index, const struct elf_dwarf_file *file,
			       struct elf_dwarf_cursor *c, uint64_t start, bool is64)
{
	uint16_t version = (uint16_t)elf_dwarf_uint(c, 2);
	uint64_t off = elf_dwarf_uint(c, is64 ? 8 : 4);
	uint8_t size = elf_dwarf_u8(c), segment = elf_dwarf_u8(c);
	uint64_t pair = 2 * (uint64_t)size, head = elf_dwarf_cursor_off(c) - start;

	if (c->error || version != 2 || (size != 4 && size != 8) || segment != 0)
		return 0;
	elf_dwarf_cursor_seek(c, start + (head + pair - 1) / pair * pair);
	while (!elf_dwarf_cursor_done(c)) {
		uint64_t low = elf_dwarf_uint(c, size), length = elf_dwarf_uint(c, size);
		int r;

		if (c->error || (low == 0 && length == 0))
			break;
		r = dwarf_index_add(index, file,
				    (struct elf_dwarf_index_entry){low, low + length, off});
		if (r < 0)
			return r;
	}
	return 0;
}

static int dwarf_index_load_aranges(struct elf_dwarf_index *index, struct elf_dwarf_file *file)
{
	struct elf_dwarf_section *section = &file->sections[ELF_DWARF_ARANGES];
	uint64_t off = 0;
	int r = 0;

	index->has_aranges = true;
	while (r == 0 && off < section->size) {
		struct elf_dwarf_cursor c;
		uint64_t start = off, length;
		bool is64;

		elf_dwarf_cursor_init(&c, section, off, UINT64_MAX);
		length = elf_dwarf_initial_length(&c, &is64);
		if (c.error)
			break;
		off = elf_dwarf_cursor_off(&c) + length;
		elf_dwarf_cursor_limit(&c, off);
		r = dwarf_index_add_set(index, file, &c, start, is64);
	}
	dwarf_index_sort(index);
	return r == -ENOMEM ? r : 0;
}

static int dwarf_index_add_unit(struct elf_dwarf_index *index, struct elf_dwarf_file *file,
				uint64_t off, struct elf_dwarf_ranges *scratch)
{
	struct elf_dwarf_unit *unit;
	int r = elf_dwarf_file_unit(file, off, &unit);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	scratch->n = 0;
	r = elf_dwarf_ranges_of(scratch, unit, &unit->top);
	for (size_t i = 0; i < scratch->n && r == 0; i++)
		r = dwarf_index_add(index, file,
				    (struct elf_dwarf_index_entry){scratch->items[i].low,
								   scratch->items[i].high, off});
	return r;
}

static int dwarf_index_known(const struct elf_dwarf_index *index, struct map *ret)
{
	for (size_t i = 0; i < index->n; i++) {
		int r = map_put(ret, index->items[i].off, 1);

		if (r < 0)
			return r;
	}
	return 0;
}

static int dwarf_index_load_units(struct elf_dwarf_index *index, struct elf_dwarf_file *file)
{
	struct elf_dwarf_ranges scratch = {.max = index->max};
	struct map known = {0};
	int r;

	index->has_units = true;
	r = dwarf_index_known(index, &known);
	if (r == 0)
		r = elf_dwarf_file_list(file);
	for (size_t i = 0; i < file->n_offsets && r == 0 && file->pool->credit > 0; i++) {
		uint64_t value;

		if (!map_get(&known, file->offsets[i], &value))
			r = dwarf_index_add_unit(index, file, file->offsets[i], &scratch);
		if (i % DWARF_INDEX_TRIM_EVERY == 0)
			elf_dwarf_file_trim(file);
	}
	elf_dwarf_file_trim(file);
	dwarf_index_sort(index);
	elf_dwarf_ranges_release(&scratch);
	map_release(&known);
	return r == -ENOMEM ? r : 0;
}

static int dwarf_index_search(const struct elf_dwarf_index *index, uint64_t vaddr,
			      uint64_t offs[ELF_DWARF_INDEX_MAX_FOUND])
{
	size_t lo = 0, hi = index->n;
	int n = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (index->items[mid].low <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = 0; i < DWARF_INDEX_OVERLAP && i < lo && n < ELF_DWARF_INDEX_MAX_FOUND;
	     i++) {
		const struct elf_dwarf_index_entry *entry = &index->items[lo - 1 - i];

		if (vaddr < entry->high)
			offs[n++] = entry->off;
	}
	return n;
}

int elf_dwarf_index_find(struct elf_dwarf_index *index, struct elf_dwarf_file *file, uint64_t vaddr,
			 uint64_t offs[ELF_DWARF_INDEX_MAX_FOUND])
{
	int n, r;

	if (!index->has_aranges) {
		r = dwarf_index_load_aranges(index, file);
		if (r < 0)
			return r;
	}
	n = dwarf_index_search(index, vaddr, offs);
	if (n > 0 || index->has_units)
		return n;
	r = dwarf_index_load_units(index, file);
	return r < 0 ? r : dwarf_index_search(index, vaddr, offs);
}
