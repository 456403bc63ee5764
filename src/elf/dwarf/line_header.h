/* src/elf/dwarf/line_header.h: the header of a line-number program, and its tables of files. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "elf/dwarf/unit.h"

struct elf_dwarf_line_header {
	struct elf_dwarf_encoding encoding;
	uint64_t tables;  /* the tables of directories and files, in .debug_line */
	uint64_t program; /* the instructions */
	uint64_t end;
	uint8_t min_length; /* of a machine instruction */
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	uint8_t lengths[256]; /* number of operands, by opcode */
};

/* The header referenced by the unit's DW_AT_stmt_list. -ENOENT, -EBADMSG, -ENOTSUP. */
int elf_dwarf_line_header_read(const struct elf_dwarf_unit *unit,
			       struct elf_dwarf_line_header *ret);
/* Appends the path of a file number; absolute if the unit has its compilation directory. */
int elf_dwarf_line_header_path(const struct elf_dwarf_unit *unit,
			       const struct elf_dwarf_line_header *h, uint64_t number,
			       struct buf *buf);
