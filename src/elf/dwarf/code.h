/*
 * src/elf/dwarf/code.h: the code of a unit: its functions and inlined calls.
 *
 * A unit is decoded in one pass over its entries, which are then no longer needed: going back to an
 * entry in a compressed section is expensive. So the result is compact: addresses are offsets from
 * a base, names are positions in the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/dwarf/unit.h"

/* Set in an offset that refers to the alternate file. */
#define ELF_DWARF_ALTERNATE ((uint64_t)1 << 63)

/* Code of a function that is not inlined; a function in several parts has several. */
struct elf_dwarf_function {
	uint64_t low;
	uint64_t high;
	uint32_t scope;
};

/* A function (its own parent), or a call inlined into its parent. */
struct elf_dwarf_scope {
	uint32_t parent;
	uint32_t first_piece; /* its pieces end where the next scope's start */
	union {
		uint32_t call_line;
		uint32_t end; /* of a function: after its last scope */
	};
	uint32_t call_file;
	uint64_t off; /* the entry that has its name, or leads to it */
};

struct elf_dwarf_piece {
	int32_t low; /* from the base */
	uint32_t len;
};

/* An entry that may have a function's name, or lead to another that does. */
struct elf_dwarf_named {
	uint32_t off; /* from the start of the unit */
	uint32_t line;
	uint64_t is_linkage : 1;
	uint64_t is_external : 1;
	uint64_t form : 14;   /* of its name; 0: none */
	uint64_t number : 48; /* its name, depending on the form */
	uint64_t next;	      /* entry, with ELF_DWARF_ALTERNATE; 0 for none */
};

struct elf_dwarf_code {
	struct elf_dwarf_function *functions; /* sorted by low */
	size_t n_functions;
	size_t cap_functions;
	struct elf_dwarf_scope *scopes;
	size_t n_scopes;
	size_t cap_scopes;
	struct elf_dwarf_piece *pieces;
	size_t n_pieces;
	size_t cap_pieces;
	struct elf_dwarf_named *named; /* sorted by off */
	size_t n_named;
	size_t cap_named;
	uint64_t base;
};

/* Sets unit->code. Omits what follows damaged data; only -ENOMEM is an error. */
int elf_dwarf_unit_load_code(struct elf_dwarf_unit *unit);
void elf_dwarf_code_free(struct elf_dwarf_code *code); /* NULL is fine */
size_t elf_dwarf_code_memory(const struct elf_dwarf_code *code);

/* The innermost scope that contains the address; false if no function does. */
bool elf_dwarf_code_find(const struct elf_dwarf_code *code, uint64_t vaddr, uint32_t *ret_scope);
/* NULL if there is no such entry of a function. */
const struct elf_dwarf_named *elf_dwarf_code_named(const struct elf_dwarf_code *code, uint64_t off);
