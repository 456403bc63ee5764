/* src/elf/dwarf/line_header.h: the header of a line-number program, and its tables of files. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "elf/dwarf/unit.h"

struct elf_dwarf_line_header {
	struct elf_dwarf_encoding encoding;
	uint64_t tables;  /* where folders and files are listed, in .debug_line */
	uint64_t program; /* where the instructions are */
	uint64_t end;
	uint8_t min_length; /* of an instruction of the machine */
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	uint8_t lengths[256]; /* how many operands an opcode has */
};

/* The header that the unit's DW_AT_stmt_list points at. -ENOENT, -EBADMSG, -ENOTSUP. */
int elf_dwarf_line_header_read(const struct elf_dwarf_unit *unit,
			       struct elf_dwarf_line_header *ret);
/* Appends the path of a file number; absolute where the unit says where it was compiled. */
int elf_dwarf_line_header_path(const struct elf_dwarf_unit *unit,
			       const struct elf_dwarf_line_header *h, uint64_t number,
			       struct buf *buf);
