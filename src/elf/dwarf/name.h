/* src/elf/dwarf/name.h: the name of an entry's function, and its first line. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "elf/dwarf/unit.h"

/*
 * Appends the linkage name if there is one, otherwise the name with its enclosing namespaces and
 * types; nothing if there is neither. Follows references to other entries, up to a limit. Only
 * -ENOMEM is an error.
 */
int elf_dwarf_name_of(struct elf_dwarf_file *file, uint64_t off, struct buf *buf,
		      uint64_t *ret_line);
