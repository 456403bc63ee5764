/* src/elf/dwarf/unit.c: see unit.h. */
#include "elf/dwarf/unit.h"

#include <errno.h>

#include "elf/dwarf/code.h"
#include "elf/dwarf/line.h"

/* Template names can be long; nobody reads more. */
#define DWARF_MAX_STRING 4096

static int dwarf_slot_of(uint16_t at)
{
	switch (at) {
	case DW_AT_sibling:
		return ELF_DWARF_SIBLING;
	case DW_AT_name:
		return ELF_DWARF_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return ELF_DWARF_LINKAGE_NAME;
	case DW_AT_low_pc:
		return ELF_DWARF_LOW_PC;
	case DW_AT_high_pc:
		return ELF_DWARF_HIGH_PC;
	case DW_AT_ranges:
		return ELF_DWARF_RANGE_LIST;
	case DW_AT_abstract_origin:
		return ELF_DWARF_ORIGIN;
	case DW_AT_specification:
		return ELF_DWARF_SPECIFICATION;
	case DW_AT_decl_line:
		return ELF_DWARF_DECL_LINE;
	case DW_AT_external:
		return ELF_DWARF_EXTERNAL;
	case DW_AT_call_file:
		return ELF_DWARF_CALL_FILE;
	case DW_AT_call_line:
		return ELF_DWARF_CALL_LINE;
	case DW_AT_stmt_list:
		return ELF_DWARF_STMT_LIST;
	case DW_AT_comp_dir:
		return ELF_DWARF_COMP_DIR;
	case DW_AT_language:
		return ELF_DWARF_LANGUAGE;
	case DW_AT_str_offsets_base:
		return ELF_DWARF_STR_OFFSETS_BASE;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return ELF_DWARF_ADDR_BASE;
	case DW_AT_rnglists_base:
		return ELF_DWARF_RNGLISTS_BASE;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return ELF_DWARF_DWO_NAME;
	default:
		return -1;
	}
}

const struct elf_dwarf_abbrev *elf_dwarf_entry_abbrev(struct elf_dwarf_cursor *c,
						      const struct elf_dwarf_unit *unit)
{
	uint64_t code = elf_dwarf_uleb(c);
	const struct elf_dwarf_abbrev *abbrev;

	if (code == 0)
		return NULL;
	abbrev = elf_dwarf_abbrevs_find(unit->abbrevs, code);
	if (!abbrev)
		elf_dwarf_cursor_fail(c, -EBADMSG);
	return abbrev;
}

void elf_dwarf_entry_values(struct elf_dwarf_cursor *c, const struct elf_dwarf_unit *unit,
			    const struct elf_dwarf_abbrev *abbrev, struct elf_dwarf_entry *ret)
{
	*ret = (struct elf_dwarf_entry){.abbrev = abbrev};
	for (size_t i = 0; i < abbrev->n_specs && !c->error; i++) {
		struct elf_dwarf_spec spec = unit->abbrevs->specs[abbrev->first_spec + i];
		int slot = dwarf_slot_of(spec.at);

		if (slot < 0)
			elf_dwarf_form_skip(c, spec, unit->encoding);
		else
			ret->values[slot] = elf_dwarf_form_read(c, spec, unit->encoding);
	}
}

void elf_dwarf_entry_read(struct elf_dwarf_cursor *c, const struct elf_dwarf_unit *unit,
			  struct elf_dwarf_entry *ret)
{
	uint64_t off = elf_dwarf_cursor_off(c);
	const struct elf_dwarf_abbrev *abbrev = elf_dwarf_entry_abbrev(c, unit);

	if (abbrev)
		elf_dwarf_entry_values(c, unit, abbrev, ret);
	else
		*ret = (struct elf_dwarf_entry){0};
	ret->off = off;
}

bool elf_dwarf_unit_addrx(const struct elf_dwarf_unit *unit, uint64_t index, uint64_t *ret)
{
	struct elf_dwarf_section *section = &unit->file->sections[ELF_DWARF_ADDR];
	uint32_t size = unit->encoding.addr_size;
	uint64_t address = 0;

	if (index > section->size / size || unit->addr_base > section->size)
		return false;
	if (elf_dwarf_section_read(section, unit->addr_base + index * size, &address, size) < 0)
		return false;
	*ret = address;
	return true;
}

bool elf_dwarf_unit_address(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			    uint64_t *ret)
{
	switch (value.form) {
	case DW_FORM_addr:
		*ret = value.number;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return elf_dwarf_unit_addrx(unit, value.number, ret);
	default:
		return false;
	}
}

bool elf_dwarf_unit_reference(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			      struct elf_dwarf_file **ret_file, uint64_t *ret_off)
{
	switch (value.form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (value.number >= unit->end - unit->off)
			return false;
		*ret_file = unit->file;
		*ret_off = unit->off + value.number;
		return true;
	case DW_FORM_ref_addr:
		*ret_file = unit->file;
		*ret_off = value.number;
		return true;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*ret_file = unit->file->alternate;
		*ret_off = value.number;
		return *ret_file != NULL;
	default:
		return false;
	}
}

/* The offset of that string in .debug_str. */
static bool dwarf_unit_strx(const struct elf_dwarf_unit *unit, uint64_t index, uint64_t *ret)
{
	struct elf_dwarf_section *section = &unit->file->sections[ELF_DWARF_STR_OFFSETS];
	uint32_t size = unit->encoding.offset_size;
	uint64_t off = 0;

	if (index > section->size / size || unit->str_offsets_base > section->size)
		return false;
	if (elf_dwarf_section_read(section, unit->str_offsets_base + index * size, &off, size) < 0)
		return false;
	*ret = off;
	return true;
}

int elf_dwarf_unit_string(const struct elf_dwarf_unit *unit, struct elf_dwarf_value value,
			  struct elf_dwarf_section *in, struct buf *buf)
{
	struct elf_dwarf_file *file = unit->file;
	struct elf_dwarf_section *section;
	uint64_t off = value.number;
	struct elf_dwarf_cursor c;

	switch (value.form) {
	case DW_FORM_string:
		section = in;
		break;
	case DW_FORM_strp:
		section = &file->sections[ELF_DWARF_STR];
		break;
	case DW_FORM_line_strp:
		section = &file->sections[ELF_DWARF_LINE_STR];
		break;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		if (!dwarf_unit_strx(unit, value.number, &off))
			return -EBADMSG;
		section = &file->sections[ELF_DWARF_STR];
		break;
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		if (!file->alternate)
			return -ENOENT;
		section = &file->alternate->sections[ELF_DWARF_STR];
		break;
	default:
		return -EBADMSG;
	}
	elf_dwarf_cursor_init(&c, section, off, UINT64_MAX);
	return elf_dwarf_cstr(&c, buf, DWARF_MAX_STRING);
}

int elf_dwarf_unit_load_abbrevs(struct elf_dwarf_unit *unit)
{
	struct elf_dwarf_file *file = unit->file;

	if (unit->abbrevs)
		return 0;
	return elf_dwarf_abbrevs_get(&file->abbrevs, &file->sections[ELF_DWARF_ABBREV],
				     unit->abbrevs_off, unit->encoding, &unit->abbrevs);
}

size_t elf_dwarf_unit_memory(const struct elf_dwarf_unit *unit)
{
	return sizeof(*unit) + (unit->code ? elf_dwarf_code_memory(unit->code) : 0) +
	       (unit->lines ? elf_dwarf_lines_memory(unit->lines) : 0);
}
