/*
 * src/elf/dwarf/line.h: line-number programs, versions 2 to 5.
 *
 * The rows of a program are many times larger than the program itself. So the program runs once to
 * find its sequences and a checkpoint every few hundred bytes; a lookup runs it from the nearest
 * checkpoint.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "elf/dwarf/unit.h"

struct elf_dwarf_lines; /* opaque */

/*
 * Sets unit->lines, which stays NULL if there are none or they are damaged. Only -ENOMEM is an
 * error.
 */
int elf_dwarf_unit_load_lines(struct elf_dwarf_unit *unit);
void elf_dwarf_lines_free(struct elf_dwarf_lines *lines); /* NULL is fine */
size_t elf_dwarf_lines_memory(const struct elf_dwarf_lines *lines);

/* File number and line of an address. False if the unit has no row for it. */
bool elf_dwarf_lines_find(const struct elf_dwarf_unit *unit, uint64_t vaddr, uint64_t *ret_file,
			  uint64_t *ret_line);
/* Appends the path of a file number. */
int elf_dwarf_lines_path(const struct elf_dwarf_unit *unit, uint64_t number, struct buf *buf);
