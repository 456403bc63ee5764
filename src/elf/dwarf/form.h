/* src/elf/dwarf/form.h: attribute values, as encoded in an entry. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/dwarf/abbrev.h"
#include "elf/dwarf/cursor.h"

/*
 * A number, whatever it means: an address or its index, an offset into another section, a constant;
 * of a string in the entry itself, the offset of its first byte; 0 for blocks.
 */
struct elf_dwarf_value {
	uint16_t form; /* 0: the attribute is not there */
	uint64_t number;
};

/* How many bytes a value takes; -1 when that depends on the value, or the form is unknown. */
int elf_dwarf_form_size(uint16_t form, struct elf_dwarf_encoding encoding);

/* Reads one value; a form that is not known fails the cursor with -EBADMSG. */
struct elf_dwarf_value elf_dwarf_form_read(struct elf_dwarf_cursor *c, struct elf_dwarf_spec spec,
					   struct elf_dwarf_encoding encoding);
void elf_dwarf_form_skip(struct elf_dwarf_cursor *c, struct elf_dwarf_spec spec,
			 struct elf_dwarf_encoding encoding);
/* All values of an entry. */
void elf_dwarf_entry_skip(struct elf_dwarf_cursor *c, const struct elf_dwarf_abbrevs *table,
			  const struct elf_dwarf_abbrev *abbrev);
