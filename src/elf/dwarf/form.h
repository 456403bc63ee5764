/* src/elf/dwarf/form.h: attribute values, as encoded in an entry. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/dwarf/abbrev.h"
#include "elf/dwarf/cursor.h"

/*
 * A number, whatever it means: an address or its index, an offset into another section, a constant;
 * for a string in the entry itself, the offset of its first byte; 0 for blocks.
 */
struct elf_dwarf_value {
	uint16_t form; /* 0: the attribute is absent */
	uint64_t number;
};

/* The size of a value; -1 if it depends on the value, or the form is unknown. */
int elf_dwarf_form_size(uint16_t form, struct elf_dwarf_encoding encoding);

/* Reads one value; an unknown form fails the cursor with -EBADMSG. */
struct elf_dwarf_value elf_dwarf_form_read(struct elf_dwarf_cursor *c, struct elf_dwarf_spec spec,
					   struct elf_dwarf_encoding encoding);
void elf_dwarf_form_skip(struct elf_dwarf_cursor *c, struct elf_dwarf_spec spec,
			 struct elf_dwarf_encoding encoding);
/* Skips all values of an entry. */
void elf_dwarf_entry_skip(struct elf_dwarf_cursor *c, const struct elf_dwarf_abbrevs *table,
			  const struct elf_dwarf_abbrev *abbrev);
