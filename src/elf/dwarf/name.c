/* src/elf/dwarf/name.c: see name.h. */
#include "elf/dwarf/name.h"

#include <errno.h>

#include "elf/dwarf/code.h"

/* A concrete function has an origin, which has a declaration; more is forged, or a cycle. */
#define DWARF_MAX_HOPS 8
#define DWARF_MAX_AROUND 32

static bool dwarf_unit_has_namespaces(const struct elf_dwarf_unit *unit)
{
	switch (unit->top.values[ELF_DWARF_LANGUAGE].number) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_C_plus_plus_17:
	case DW_LANG_C_plus_plus_20:
	case DW_LANG_D:
	case DW_LANG_Rust:
		return true;
	default:
		return false;
	}
}

/* The entries that enclose an entry, outermost first, without the top one. */
struct dwarf_around {
	uint64_t offs[DWARF_MAX_AROUND];
	size_t n;
};

/* Skips everything below an entry, if its end is known and not after the target. */
static bool dwarf_pass_by(struct elf_dwarf_cursor *c, const struct elf_dwarf_unit *unit,
			  const struct elf_dwarf_entry *entry, uint64_t target)
{
	struct elf_dwarf_file *file;
	uint64_t off;

	if (!elf_dwarf_unit_reference(unit, entry->values[ELF_DWARF_SIBLING], &file, &off) ||
	    file != unit->file || off <= elf_dwarf_cursor_off(c) || off > target)
		return false;
	elf_dwarf_cursor_seek(c, off);
	return true;
}

/* Entries do not refer to what encloses them: find it by walking from the top. */
static bool dwarf_find_around(const struct elf_dwarf_unit *unit, uint64_t target,
			      struct dwarf_around *around)
{
	struct elf_dwarf_cursor c;

	around->n = 0;
	elf_dwarf_cursor_init(&c, &unit->file->sections[ELF_DWARF_INFO], unit->first, unit->end);
	while (!elf_dwarf_cursor_done(&c) && elf_dwarf_cursor_off(&c) < target) {
		uint64_t off = elf_dwarf_cursor_off(&c);
		const struct elf_dwarf_abbrev *abbrev = elf_dwarf_entry_abbrev(&c, unit);
		struct elf_dwarf_entry entry;

		if (!abbrev) {
			if (around->n == 0)
				return false;
			around->n--;
			continue;
		}
		if (!abbrev->has_children) {
			elf_dwarf_entry_skip(&c, unit->abbrevs, abbrev);
			continue;
		}
		elf_dwarf_entry_values(&c, unit, abbrev, &entry);
		if (dwarf_pass_by(&c, unit, &entry, target))
			continue;
		if (around->n == DWARF_MAX_AROUND)
			return false;
		around->offs[around->n++] = off;
	}
	return !c.error && elf_dwarf_cursor_off(&c) == target;
}

/* *in_type: it is enclosed by something other than a namespace. */
static int dwarf_append_around(struct elf_dwarf_unit *unit, uint64_t off, struct buf *buf,
			       bool *in_type)
{
	struct elf_dwarf_section *info = &unit->file->sections[ELF_DWARF_INFO];
	struct dwarf_around around;
	int r = elf_dwarf_unit_load_abbrevs(unit);

	if (r < 0)
		return r;
	if (!dwarf_find_around(unit, off, &around))
		return 0;
	for (size_t i = 1; i < around.n && r == 0; i++) {
		struct elf_dwarf_value name;
		struct elf_dwarf_entry entry;
		struct elf_dwarf_cursor c;

		elf_dwarf_cursor_init(&c, info, around.offs[i], unit->end);
		elf_dwarf_entry_read(&c, unit, &entry);
		if (c.error || !entry.abbrev)
			break;
		name = entry.values[ELF_DWARF_NAME];
		*in_type |= entry.abbrev->tag != DW_TAG_namespace;
		if (name.form)
			r = elf_dwarf_unit_string(unit, name, info, buf);
		else if (entry.abbrev->tag == DW_TAG_namespace)
			r = buf_append_str(buf, "(anonymous namespace)");
		else
			continue;
		if (r == 0)
			r = buf_append_str(buf, "::");
	}
	return r;
}

/* One entry of the chain. */
struct dwarf_link {
	struct elf_dwarf_unit *unit;
	const struct elf_dwarf_named *named;
};

static int dwarf_link_read(struct elf_dwarf_file *file, uint64_t off, struct dwarf_link *ret)
{
	int r = elf_dwarf_file_unit_at(file, off, &ret->unit);

	if (r == 0)
		r = elf_dwarf_unit_load_code(ret->unit);
	if (r < 0)
		return r;
	ret->named = elf_dwarf_code_named(ret->unit->code, off - ret->unit->off);
	return ret->named ? 0 : -ENOENT;
}

static int dwarf_append_name(const struct dwarf_link *link, struct buf *buf)
{
	const struct elf_dwarf_named *named = link->named;
	struct elf_dwarf_value name = {named->form, named->number};
	size_t start = buf->len;
	bool in_type = false;
	int r = 0;

	if (!named->is_linkage && dwarf_unit_has_namespaces(link->unit))
		r = dwarf_append_around(link->unit, link->unit->off + named->off, buf, &in_type);
	if (r < 0)
		return r;
	/* Global names that are not mangled, like extern "C", have no namespace. */
	if (named->is_external && !in_type)
		buf->len = start;
	return elf_dwarf_unit_string(link->unit, name, &link->unit->file->sections[ELF_DWARF_INFO],
				     buf);
}

int elf_dwarf_name_of(struct elf_dwarf_file *file, uint64_t off, struct buf *buf,
		      uint64_t *ret_line)
{
	struct dwarf_link at, best = {0};
	size_t start = buf->len;
	uint64_t line = 0;
	int r = 0;

	for (int hop = 0; hop < DWARF_MAX_HOPS && file; hop++) {
		r = dwarf_link_read(file, off, &at);
		if (r < 0)
			break;
		if (!line)
			line = at.named->line;
		/* Declarations are inside the namespace, so the last name is the best. */
		if (at.named->form)
			best = at;
		if (at.named->is_linkage || !at.named->next)
			break;
		off = at.named->next & ~ELF_DWARF_ALTERNATE;
		file = at.named->next & ELF_DWARF_ALTERNATE ? file->alternate : file;
	}
	if (best.unit && r != -ENOMEM)
		r = dwarf_append_name(&best, buf);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		buf->len = start;
	*ret_line = line;
	return 0;
}
