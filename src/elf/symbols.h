/* src/elf/symbols.h: symbols of an ELF file: few by name, quickly; or all functions, for lookup. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "elf/image.h"

struct elf_symbol {
	const char *name; /* in: what to look for */
	uint64_t value;	  /* out: link-time address, 0 when not found */
	uint64_t size;
};

/*
 * Looks up all wanted names in .symtab: one pass over the string table for the names, one over the
 * symbols for their string offsets. Returns how many were found, or -errno; -ENOENT without
 * .symtab.
 */
int elf_symbols_find(const struct elf_image *image, struct elf_symbol *wanted, size_t n,
		     struct err *err);

/* Function symbols of .symtab, or of .dynsym when that is all there is, sorted by address. */
struct elf_functions; /* opaque */

int elf_functions_load(const struct elf_image *image, struct elf_functions **ret_functions,
		       struct err *err);
/* The function that covers the link-time address; NULL when none does. Borrowed. */
const char *elf_functions_lookup(const struct elf_functions *functions, uint64_t vaddr,
				 uint64_t *ret_start);
void elf_functions_free(struct elf_functions *functions);
DEFINE_CLEANUP(struct elf_functions, elf_functions_free)
