/* src/elf/dwarf/name.h: the name of an entry's function, and its first line. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "elf/dwarf/unit.h"

/*
 * Appends the linkage name where there is one, else the name with the namespaces and types around
 * it; nothing when there is neither. An entry that refers to another is followed, but not forever.
 * Only -ENOMEM is an error.
 */
int elf_dwarf_name_of(struct elf_dwarf_file *file, uint64_t off, struct buf *buf,
		      uint64_t *ret_line);
