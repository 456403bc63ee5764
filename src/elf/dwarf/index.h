/*
 * src/elf/dwarf/index.h: finds the unit of an address.
 *
 * .debug_aranges is read first. It may be missing or incomplete; so if it does not know an address,
 * the top entries of the units it lacks are read as well, once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/dwarf/unit.h"

struct elf_dwarf_index_entry {
	uint64_t low;
	uint64_t high;
	uint64_t off; /* of the unit */
};

/* Empty if zeroed, except for a maximum. */
struct elf_dwarf_index {
	struct elf_dwarf_index_entry *items; /* sorted by low */
	size_t n;
	size_t cap;
	size_t max;
	bool has_aranges;
	bool has_units;
};

#define ELF_DWARF_INDEX_MAX_FOUND 4

/*
 * Writes the offsets of units that may contain the address, likeliest first. Returns how many, or
 * -ENOMEM.
 */
int elf_dwarf_index_find(struct elf_dwarf_index *index, struct elf_dwarf_file *file, uint64_t vaddr,
			 uint64_t offs[ELF_DWARF_INDEX_MAX_FOUND]);
void elf_dwarf_index_release(struct elf_dwarf_index *index);
size_t elf_dwarf_index_memory(const struct elf_dwarf_index *index);
