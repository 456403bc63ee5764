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

struct dwarf_index_entry {
	uint64_t low;
	uint64_t high;
	uint64_t off; /* of the unit */
};

/* A zeroed one with a maximum is empty. */
struct dwarf_index {
	struct dwarf_index_entry *items; /* sorted by low */
	size_t n;
	size_t cap;
	size_t max;
	bool has_aranges;
	bool has_units;
};

#define DWARF_INDEX_MAX_FOUND 4

/* Writes the offsets of units that may hold the address, the likeliest first. How many, or -ENOMEM.
 */
int dwarf_index_find(struct dwarf_index *index, struct dwarf_file *file, uint64_t vaddr,
		     uint64_t offs[DWARF_INDEX_MAX_FOUND]);
void dwarf_index_release(struct dwarf_index *index);
size_t dwarf_index_memory(const struct dwarf_index *index);
