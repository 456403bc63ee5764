/* src/elf/dwarf/abbrev.h: abbreviation tables, which describe the form of a unit's entries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/dwarf/section.h"

/* What the sizes of values depend on. */
struct elf_dwarf_encoding {
	uint16_t version;
	uint8_t addr_size;   /* 4 or 8 */
	uint8_t offset_size; /* 4, or 8 in 64-bit DWARF */
};

struct elf_dwarf_spec {
	uint16_t at;
	uint16_t form;
	int32_t constant; /* of DW_FORM_implicit_const */
};

struct elf_dwarf_abbrev {
	uint64_t code;
	uint32_t first_spec;
	uint16_t n_specs;
	uint16_t tag;
	bool has_children;
	bool has_sibling;
	int16_t size; /* of all values, -1 if not constant */
};

struct elf_dwarf_abbrevs {
	struct elf_dwarf_abbrev *items; /* sorted by code */
	size_t n;
	struct elf_dwarf_spec *specs;
	size_t n_specs;
	uint64_t off;
	struct elf_dwarf_encoding encoding;
	unsigned int n_refs;
	struct elf_dwarf_abbrevs *next; /* of those that are in use */
};

/*
 * The table at that offset of .debug_abbrev; units with the same table share it through *list.
 * -EBADMSG, -E2BIG if larger than any real one, -ENOMEM.
 */
int elf_dwarf_abbrevs_get(struct elf_dwarf_abbrevs **list, struct elf_dwarf_section *section,
			  uint64_t off, struct elf_dwarf_encoding encoding,
			  struct elf_dwarf_abbrevs **ret);
void elf_dwarf_abbrevs_put(struct elf_dwarf_abbrevs **list, struct elf_dwarf_abbrevs *table);

/* NULL if there is no such code. */
const struct elf_dwarf_abbrev *elf_dwarf_abbrevs_find(const struct elf_dwarf_abbrevs *table,
						      uint64_t code);
size_t elf_dwarf_abbrevs_memory(const struct elf_dwarf_abbrevs *table);
