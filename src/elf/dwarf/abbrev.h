/* src/elf/dwarf/abbrev.h: abbreviation tables, which describe the form of a unit's entries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/dwarf/section.h"

/* What the sizes of values depend on. */
struct dwarf_encoding {
	uint16_t version;
	uint8_t addr_size;   /* 4 or 8 */
	uint8_t offset_size; /* 4, or 8 in 64-bit DWARF */
};

struct dwarf_spec {
	uint16_t at;
	uint16_t form;
	int32_t constant; /* of DW_FORM_implicit_const */
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first_spec;
	uint16_t n_specs;
	uint16_t tag;
	bool has_children;
	bool has_sibling;
	int16_t size; /* of all values, -1 when it is not always the same */
};

struct dwarf_abbrevs {
	struct dwarf_abbrev *items; /* sorted by code */
	size_t n;
	struct dwarf_spec *specs;
	size_t n_specs;
	uint64_t off;
	struct dwarf_encoding encoding;
	unsigned int n_refs;
	struct dwarf_abbrevs *next; /* of those that are in use */
};

/*
 * The table at that offset of .debug_abbrev; units that share one share it here as well, by way
 * of *list. -EBADMSG, -E2BIG for one that is larger than any real one, -ENOMEM.
 */
int dwarf_abbrevs_get(struct dwarf_abbrevs **list, struct dwarf_section *section, uint64_t off,
		      struct dwarf_encoding encoding, struct dwarf_abbrevs **ret);
void dwarf_abbrevs_put(struct dwarf_abbrevs **list, struct dwarf_abbrevs *table);

/* NULL when there is no such code. */
const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *table, uint64_t code);
size_t dwarf_abbrevs_memory(const struct dwarf_abbrevs *table);
