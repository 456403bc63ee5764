/* tests/support/unwind_table.h: the unwind information of a file as one table, and what it says. */
#pragma once

#include "elf/unwind/unwind.h"

/* All rows of the file; errors as those of elf_unwind_stream(). */
int elf_unwind_compile(const struct elf_image *image, struct elf_unwind_table *ret_table,
		       struct err *err);
/* The rule at vaddr; ELF_UNWIND_NONE outside of the table. */
struct elf_unwind_rule unwind_table_lookup(const struct elf_unwind_table *table, uint64_t vaddr);
/* The function start at or below vaddr; 0 when there is none. */
uint64_t unwind_table_start(const struct elf_unwind_table *table, uint64_t vaddr);
