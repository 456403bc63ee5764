/* src/elf/dwarf/file.c: the sections of a file and its units; see unit.h. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/dwarf/array.h"
#include "elf/dwarf/code.h"
#include "elf/dwarf/line.h"
#include "elf/dwarf/unit.h"

#define DWARF_MAX_CACHED_UNITS 2048U
#define DWARF_MAX_UNITS ((size_t)1 << 20)

static const char *const dwarf_section_names[ELF_DWARF_N_SECTIONS] = {
	[ELF_DWARF_INFO] = "info",	   [ELF_DWARF_ABBREV] = "abbrev",
	[ELF_DWARF_LINE] = "line",	   [ELF_DWARF_LINE_STR] = "line_str",
	[ELF_DWARF_STR] = "str",	   [ELF_DWARF_STR_OFFSETS] = "str_offsets",
	[ELF_DWARF_ADDR] = "addr",	   [ELF_DWARF_RANGES] = "ranges",
	[ELF_DWARF_RNGLISTS] = "rnglists", [ELF_DWARF_ARANGES] = "aranges",
};

/*
 * Shares of compressed sections, in 64ths of a file's memory, half of which is for units. Entries
 * are read once per unit; lines and names are looked up at random.
 */
static const uint8_t dwarf_section_shares[ELF_DWARF_N_SECTIONS] = {
	[ELF_DWARF_INFO] = 8,	  [ELF_DWARF_ABBREV] = 2, [ELF_DWARF_LINE] = 12,
	[ELF_DWARF_LINE_STR] = 1, [ELF_DWARF_STR] = 4,	  [ELF_DWARF_STR_OFFSETS] = 1,
	[ELF_DWARF_ADDR] = 1,	  [ELF_DWARF_RANGES] = 1, [ELF_DWARF_RNGLISTS] = 2,
};

static void dwarf_file_find_code(struct elf_dwarf_file *file)
{
	for (size_t i = 0; i < file->image->n_segments && file->n_code < ELF_DWARF_MAX_CODE; i++) {
		const struct elf_segment *s = &file->image->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X)
			file->code[file->n_code++] = *s;
	}
}

int elf_dwarf_file_open(struct elf_dwarf_file *file, const struct elf_image *image,
			struct elf_dwarf_pool *pool, size_t max_bytes, struct err *err)
{
	*file = (struct elf_dwarf_file){.image = image, .pool = pool, .max_bytes = max_bytes / 2};
	dwarf_file_find_code(file);
	for (size_t i = 0; i < ELF_DWARF_N_SECTIONS; i++) {
		size_t share = max_bytes / 64 * dwarf_section_shares[i];
		int r = elf_dwarf_section_open(&file->sections[i], image, pool,
					       dwarf_section_names[i], share);

		if (r == -ENOMEM)
			return err_oom(err);
		if (r < 0)
			return err_set(
				err, r, "its section .debug_%s is %s", dwarf_section_names[i],
				r == -ENOTSUP ? "compressed in an unsupported way" : "damaged");
	}
	return 0;
}

static void dwarf_unit_free(struct elf_dwarf_unit *unit)
{
	if (!unit)
		return;
	elf_dwarf_abbrevs_put(&unit->file->abbrevs, unit->abbrevs);
	elf_dwarf_lines_free(unit->lines);
	elf_dwarf_code_free(unit->code);
	free(unit);
}

DEFINE_CLEANUP(struct elf_dwarf_unit, dwarf_unit_free)

void elf_dwarf_file_close(struct elf_dwarf_file *file)
{
	while (file->units) {
		struct elf_dwarf_unit *unit = file->units;

		file->units = unit->next;
		dwarf_unit_free(unit);
	}
	for (size_t i = 0; i < ELF_DWARF_N_SECTIONS; i++)
		elf_dwarf_section_close(&file->sections[i]);
	free(file->offsets);
	*file = (struct elf_dwarf_file){0};
}

static size_t dwarf_file_units_memory(const struct elf_dwarf_file *file)
{
	size_t bytes = 0;

	for (const struct elf_dwarf_unit *unit = file->units; unit; unit = unit->next)
		bytes += elf_dwarf_unit_memory(unit);
	for (const struct elf_dwarf_abbrevs *table = file->abbrevs; table; table = table->next)
		bytes += elf_dwarf_abbrevs_memory(table);
	return bytes;
}

size_t elf_dwarf_file_memory(const struct elf_dwarf_file *file)
{
	size_t bytes = dwarf_file_units_memory(file) + file->n_offsets * sizeof(*file->offsets);

	for (size_t i = 0; i < ELF_DWARF_N_SECTIONS; i++)
		bytes += elf_dwarf_section_memory(&file->sections[i]);
	return bytes;
}

static void dwarf_file_drop_last(struct elf_dwarf_file *file)
{
	struct elf_dwarf_unit **link = &file->units;

	while ((*link)->next)
		link = &(*link)->next;
	dwarf_unit_free(*link);
	*link = NULL;
	file->n_units--;
}

void elf_dwarf_file_trim(struct elf_dwarf_file *file)
{
	for (struct elf_dwarf_unit *unit = file->units; unit; unit = unit->next) {
		elf_dwarf_abbrevs_put(&file->abbrevs, unit->abbrevs);
		unit->abbrevs = NULL;
	}
	while (file->units && file->units->next &&
	       (file->n_units > DWARF_MAX_CACHED_UNITS ||
		dwarf_file_units_memory(file) > file->max_bytes / 8 * 7))
		dwarf_file_drop_last(file);
}

bool elf_dwarf_file_has_code(const struct elf_dwarf_file *file, uint64_t vaddr)
{
	if (vaddr == 0)
		return false;
	for (size_t i = 0; i < file->n_code; i++) {
		const struct elf_segment *s = &file->code[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->memsz)
			return true;
	}
	return file->n_code == 0;
}

/*
 * The header of a unit:
 *
 *   2 to 4   length | version u16 | abbreviations | address size u8
 *   5        length | version u16 | type u8 | address size u8 | abbreviations | (by type)
 */
static int dwarf_unit_header(struct elf_dwarf_unit *unit, struct elf_dwarf_cursor *c)
{
	struct elf_dwarf_encoding *e = &unit->encoding;
	uint64_t length;
	bool is64;

	length = elf_dwarf_initial_length(c, &is64);
	unit->end = elf_dwarf_cursor_off(c) + length;
	elf_dwarf_cursor_limit(c, unit->end);
	e->offset_size = is64 ? 8 : 4;
	e->version = (uint16_t)elf_dwarf_uint(c, 2);
	if (c->error)
		return c->error;
	if (e->version < 2 || e->version > 5)
		return -ENOTSUP;
	unit->type = DW_UT_compile;
	if (e->version >= 5) {
		unit->type = elf_dwarf_u8(c);
		e->addr_size = elf_dwarf_u8(c);
		unit->abbrevs_off = elf_dwarf_uint(c, e->offset_size);
		if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
			elf_dwarf_cursor_skip(c, 8);
		else if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
			elf_dwarf_cursor_skip(c, 8 + (uint64_t)e->offset_size);
	} else {
		unit->abbrevs_off = elf_dwarf_uint(c, e->offset_size);
		e->addr_size = elf_dwarf_u8(c);
	}
	if (!c->error && e->addr_size != 4 && e->addr_size != 8)
		return -ENOTSUP;
	unit->first = elf_dwarf_cursor_off(c);
	return c->error;
}

static uint64_t dwarf_base(const struct elf_dwarf_entry *top, enum elf_dwarf_slot slot,
			   uint64_t otherwise)
{
	return top->values[slot].form ? top->values[slot].number : otherwise;
}

static void dwarf_unit_use_top(struct elf_dwarf_unit *unit)
{
	/* The end of the first table's header: the default if a producer omits the base. */
	uint64_t header = unit->encoding.offset_size == 8 ? 16 : 8;
	const struct elf_dwarf_entry *top = &unit->top;

	unit->addr_base =
		dwarf_base(top, ELF_DWARF_ADDR_BASE, unit->encoding.version >= 5 ? header : 0);
	unit->str_offsets_base = dwarf_base(top, ELF_DWARF_STR_OFFSETS_BASE, header);
	unit->rnglists_base = dwarf_base(top, ELF_DWARF_RNGLISTS_BASE, header + 4);
	unit->is_split = top->values[ELF_DWARF_DWO_NAME].form != 0 || unit->type == DW_UT_skeleton;
	if (!elf_dwarf_unit_address(unit, top->values[ELF_DWARF_LOW_PC], &unit->low_pc))
		unit->low_pc = 0;
}

static int dwarf_unit_load(struct elf_dwarf_file *file, uint64_t off,
			   struct elf_dwarf_unit **ret_unit)
{
	_cleanup_(dwarf_unit_freep) struct elf_dwarf_unit *unit = calloc(1, sizeof(*unit));
	struct elf_dwarf_cursor c;
	int r;

	if (!unit)
		return -ENOMEM;
	unit->file = file;
	unit->off = off;
	elf_dwarf_cursor_init(&c, &file->sections[ELF_DWARF_INFO], off, UINT64_MAX);
	r = dwarf_unit_header(unit, &c);
	if (r == 0)
		r = elf_dwarf_unit_load_abbrevs(unit);
	if (r < 0)
		return r;
	elf_dwarf_entry_read(&c, unit, &unit->top);
	if (c.error || !unit->top.abbrev)
		return c.error ? c.error : -EBADMSG;
	unit->top.abbrev = NULL;
	dwarf_unit_use_top(unit);
	*ret_unit = TAKE_PTR(unit);
	return 0;
}

int elf_dwarf_file_unit(struct elf_dwarf_file *file, uint64_t off, struct elf_dwarf_unit **ret_unit)
{
	struct elf_dwarf_unit **link, *unit;
	int r;

	for (link = &file->units; *link; link = &(*link)->next)
		if ((*link)->off == off)
			break;
	unit = *link;
	if (unit) {
		*link = unit->next;
	} else {
		if (dwarf_file_units_memory(file) > file->max_bytes)
			return -E2BIG;
		r = dwarf_unit_load(file, off, &unit);
		if (r != 0)
			return r;
		file->n_units++;
	}
	unit->next = file->units;
	file->units = unit;
	*ret_unit = unit;
	return 0;
}

static int dwarf_file_add_offset(struct elf_dwarf_file *file, size_t *cap, uint64_t off)
{
	int r = elf_dwarf_array_reserve(&file->offsets, cap, file->n_offsets, sizeof(off),
					MIN(DWARF_MAX_UNITS, file->max_bytes / sizeof(off)));

	if (r < 0)
		return r;
	file->offsets[file->n_offsets++] = off;
	return 0;
}

int elf_dwarf_file_list(struct elf_dwarf_file *file)
{
	struct elf_dwarf_section *info = &file->sections[ELF_DWARF_INFO];
	uint64_t off = 0;
	size_t cap = 0;
	int r = 0;

	if (file->is_listed)
		return 0;
	file->is_listed = true;
	while (r == 0 && off < info->size) {
		struct elf_dwarf_cursor c;
		uint64_t length;
		bool is64;

		elf_dwarf_cursor_init(&c, info, off, UINT64_MAX);
		length = elf_dwarf_initial_length(&c, &is64);
		if (c.error)
			break;
		if (length)
			r = dwarf_file_add_offset(file, &cap, off);
		off = elf_dwarf_cursor_off(&c) + length;
	}
	return r == -ENOMEM ? r : 0;
}

int elf_dwarf_file_unit_at(struct elf_dwarf_file *file, uint64_t off,
			   struct elf_dwarf_unit **ret_unit)
{
	size_t lo = 0, hi;
	int r;

	for (struct elf_dwarf_unit *unit = file->units; unit; unit = unit->next)
		if (off >= unit->first && off < unit->end)
			return elf_dwarf_file_unit(file, unit->off, ret_unit);
	r = elf_dwarf_file_list(file);
	if (r < 0)
		return r;
	hi = file->n_offsets;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (file->offsets[mid] <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return -EBADMSG;
	r = elf_dwarf_file_unit(file, file->offsets[lo - 1], ret_unit);
	if (r < 0)
		return r;
	return off >= (*ret_unit)->first && off < (*ret_unit)->end ? 0 : -EBADMSG;
}
