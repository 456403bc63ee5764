/* src/elf/dwarf/range.h: the address ranges of an entry, in all forms of DWARF. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "elf/dwarf/unit.h"

struct elf_dwarf_range {
	uint64_t low;
	uint64_t high;
};

/* A zeroed one is empty; max limits it. Its cursor stays open, as the next list is often near. */
struct elf_dwarf_ranges {
	struct elf_dwarf_range *items;
	size_t n;
	size_t cap;
	size_t max;
	struct elf_dwarf_cursor c;
};

void elf_dwarf_ranges_release(struct elf_dwarf_ranges *ranges);
/* Appends those of the entry, if any. A damaged list ends where it is damaged. */
int elf_dwarf_ranges_of(struct elf_dwarf_ranges *ranges, const struct elf_dwarf_unit *unit,
			const struct elf_dwarf_entry *entry);
