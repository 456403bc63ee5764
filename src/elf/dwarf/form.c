/* src/elf/dwarf/form.c: see form.h. */
#include "elf/dwarf/form.h"

#include <errno.h>

#include "elf/dwarf/const.h"

int elf_dwarf_form_size(uint16_t form, struct elf_dwarf_encoding encoding)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return encoding.addr_size;
	case DW_FORM_ref_addr:
		/* DWARF 2 used the size of an address. */
		return encoding.version <= 2 ? encoding.addr_size : encoding.offset_size;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return encoding.offset_size;
	default:
		return -1;
	}
}

static uint64_t dwarf_form_read_variable(struct elf_dwarf_cursor *c, uint16_t form)
{
	uint64_t off = elf_dwarf_cursor_off(c);

	switch (form) {
	case DW_FORM_string:
		elf_dwarf_skip_cstr(c);
		return off;
	case DW_FORM_block1:
		elf_dwarf_cursor_skip(c, elf_dwarf_u8(c));
		return 0;
	case DW_FORM_block2:
		elf_dwarf_cursor_skip(c, elf_dwarf_uint(c, 2));
		return 0;
	case DW_FORM_block4:
		elf_dwarf_cursor_skip(c, elf_dwarf_uint(c, 4));
		return 0;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		elf_dwarf_cursor_skip(c, elf_dwarf_uleb(c));
		return 0;
	case DW_FORM_sdata:
		return (uint64_t)elf_dwarf_sleb(c);
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return elf_dwarf_uleb(c);
	default:
		elf_dwarf_cursor_fail(c, -EBADMSG);
		return 0;
	}
}

struct elf_dwarf_value elf_dwarf_form_read(struct elf_dwarf_cursor *c, struct elf_dwarf_spec spec,
					   struct elf_dwarf_encoding encoding)
{
	struct elf_dwarf_value value = {.form = spec.form};
	int size;

	if (spec.form == DW_FORM_indirect) {
		uint64_t form = elf_dwarf_uleb(c);

		/* A reference to another indirect form, or to a missing constant, is forged. */
		if (form > UINT16_MAX || form == DW_FORM_indirect || form == DW_FORM_implicit_const)
			elf_dwarf_cursor_fail(c, -EBADMSG);
		value.form = (uint16_t)form;
	}
	size = elf_dwarf_form_size(value.form, encoding);
	if (value.form == DW_FORM_implicit_const)
		value.number = (uint64_t)(int64_t)spec.constant;
	else if (value.form == DW_FORM_flag_present)
		value.number = 1;
	else if (size < 0)
		value.number = dwarf_form_read_variable(c, value.form);
	else if (size > 8)
		elf_dwarf_cursor_skip(c, (uint64_t)size);
	else
		value.number = elf_dwarf_uint(c, (uint32_t)size);
	return value;
}

void elf_dwarf_form_skip(struct elf_dwarf_cursor *c, struct elf_dwarf_spec spec,
			 struct elf_dwarf_encoding encoding)
{
	int size = elf_dwarf_form_size(spec.form, encoding);

	if (size >= 0)
		elf_dwarf_cursor_skip(c, (uint64_t)size);
	else
		(void)elf_dwarf_form_read(c, spec, encoding);
}

void elf_dwarf_entry_skip(struct elf_dwarf_cursor *c, const struct elf_dwarf_abbrevs *table,
			  const struct elf_dwarf_abbrev *abbrev)
{
	if (abbrev->size >= 0) {
		elf_dwarf_cursor_skip(c, (uint64_t)abbrev->size);
		return;
	}
	for (size_t i = 0; i < abbrev->n_specs && !c->error; i++)
		elf_dwarf_form_skip(c, table->specs[abbrev->first_spec + i], table->encoding);
}
