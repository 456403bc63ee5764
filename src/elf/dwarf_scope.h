/*
 * src/elf/dwarf_scope.h: the calls that a compiler put into the code of one function.
 *
 * Decoded for one function at a time, for a unit of a program linked with LTO may have a hundred
 * thousand of them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "elf/dwarf_range.h"
#include "elf/dwarf_unit.h"

struct dwarf_scope {
	uint32_t parent; /* index of the scope it was called in; itself for the function */
	uint32_t first_range;
	uint32_t n_ranges;
	uint32_t call_line;
	uint32_t call_file;
	bool is_alternate; /* its entry is in the alternate file */
	uint64_t off;	   /* entry that describes the function: of an inlined one, its origin */
};

/* Scope 0 is the function itself; parents come before their children. */
struct dwarf_scopes {
	struct dwarf_scope *items;
	size_t n;
	size_t cap;
	struct dwarf_ranges ranges;
};

/* Decodes the function at that entry. What comes behind damage is left out; -E2BIG, -ENOMEM. */
int dwarf_scopes_load(const struct dwarf_unit *unit, uint64_t off, struct dwarf_scopes **ret);
void dwarf_scopes_free(struct dwarf_scopes *scopes); /* NULL is fine */
size_t dwarf_scopes_memory(const struct dwarf_scopes *scopes);

/* The innermost scope that holds the address; 0 when none but the function does. */
size_t dwarf_scopes_find(const struct dwarf_scopes *scopes, uint64_t vaddr);
