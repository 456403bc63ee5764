/*
 * src/elf/symtab.h: locates a symbol table and its names, and streams the symbols in large batches.
 * Private to this room.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/image.h"

/* Read size: large enough for system calls not to matter, small enough for the CPU's cache. */
#define ELF_CHUNK_BYTES ((size_t)64 << 10)
/* A larger symbol table is forged, or not worth the time. */
#define ELF_MAX_TABLE_BYTES ((uint64_t)512 << 20)

struct elf_symtab {
	const struct elf_section *symbols;
	const struct elf_section *strings;
};

/* The table of that type (SHT_SYMTAB, SHT_DYNSYM); -ENOENT, or -EBADMSG if it has no names. */
int elf_symtab_locate(const struct elf_image *image, uint32_t type, struct elf_symtab *ret,
		      struct err *err);

#define ELF_RANK_GLOBAL 3

/* Ranks symbols for the same thing: global over weak over local. Never 0. */
static inline uint8_t elf_symbol_rank(const Elf64_Sym *sym)
{
	unsigned int bind = ELF64_ST_BIND(sym->st_info);

	return bind == STB_LOCAL ? 1 : bind == STB_WEAK ? 2 : ELF_RANK_GLOBAL;
}

struct elf_symtab_reader {
	const struct elf_image *image;
	uint64_t off;
	uint64_t left; /* symbols */
	Elf64_Sym *batch;
	size_t cap;
};

/* Streams into the caller's memory. */
struct elf_symtab_reader elf_symtab_read(const struct elf_image *image,
					 const struct elf_symtab *table, void *memory, size_t size);
/* The number of symbols now in reader->batch, 0 at the end, or -EBADMSG. */
ssize_t elf_symtab_next(struct elf_symtab_reader *reader, struct err *err);
