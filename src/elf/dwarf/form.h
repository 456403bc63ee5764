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
struct dwarf_value {
	uint16_t form; /* 0: the attribute is not there */
	uint64_t number;
};

/* How many bytes a value takes; -1 when that depends on the value, or the form is unknown. */
int dwarf_form_size(uint16_t form, struct dwarf_encoding encoding);

/* Reads one value; a form that is not known fails the cursor with -EBADMSG. */
struct dwarf_value dwarf_form_read(struct dwarf_cursor *c, struct dwarf_spec spec,
				   struct dwarf_encoding encoding);
void dwarf_form_skip(struct dwarf_cursor *c, struct dwarf_spec spec,
		     struct dwarf_encoding encoding);
/* All values of an entry. */
void dwarf_entry_skip(struct dwarf_cursor *c, const struct dwarf_abbrevs *table,
		      const struct dwarf_abbrev *abbrev);
