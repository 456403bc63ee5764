/* src/elf/symbols.h: symbols of an ELF file: a few by name, or all functions by address. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "elf/image.h"

struct elf_symbol {
	const char *name; /* in: the name to find */
	uint64_t value;	  /* out: link-time address, 0 if not found */
	uint64_t size;
};

/*
 * Looks up all wanted names in .symtab: one pass over the string table for the names, one over the
 * symbols for their string offsets. Returns how many were found, or -errno; -ENOENT without
 * .symtab.
 */
int elf_symbols_find(const struct elf_image *image, struct elf_symbol *wanted, size_t n,
		     struct err *err);
/* The same in .dynsym: exported symbols, which stripped files have as well. */
int elf_symbols_find_exported(const struct elf_image *image, struct elf_symbol *wanted, size_t n,
			      struct err *err);

/*
 * Function symbols of .symtab, or of .dynsym if that is all there is, sorted by address. Twelve
 * bytes each: names stay in the file, which is kept open, and are read on demand. If the image is
 * in memory, they are copied. -E2BIG past 16 MB.
 */
struct elf_functions; /* opaque */

int elf_functions_load(const struct elf_image *image, struct elf_functions **ret_functions,
		       struct err *err);
/*
 * The function that covers the link-time address; NULL if none does. Of several names, prefers
 * global over weak over local, then the fewest leading underscores. A function without a size
 * extends to the next one, but not over an entry of the unwind information that begins after it
 * (elf_entry_start(); 0: not known), and not further than a few pages: what has no name is not its
 * own. The name is valid until the next lookup.
 */
const char *elf_functions_lookup(const struct elf_functions *functions, uint64_t vaddr,
				 uint64_t entry, uint64_t *ret_start);
size_t elf_functions_memory(const struct elf_functions *functions);
void elf_functions_free(struct elf_functions *functions);
DEFINE_CLEANUP(struct elf_functions, elf_functions_free)

/*
 * The start of the function around the link-time address, from the search table of the unwind
 * information (.eh_frame_hdr), for functions without a name: a binary search in the file that
 * allocates nothing. -ENOENT: there is no table, or no entry at or below the address.
 */
int elf_entry_start(const struct elf_image *image, uint64_t vaddr, uint64_t *ret_start);
