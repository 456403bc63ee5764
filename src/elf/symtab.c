/* src/elf/symtab.c: see symtab.h. */
#include "elf/symtab.h"

#include <errno.h>

static bool elf_table_fits(const struct elf_image *image, const struct elf_section *s)
{
	return s->offset <= image->size && s->size <= image->size - s->offset;
}

int elf_symtab_locate(const struct elf_image *image, uint32_t type, struct elf_symtab *ret,
		      struct err *err)
{
	const struct elf_section *symbols = NULL, *strings;

	for (size_t i = 0; i < image->n_sections && !symbols; i++)
		if (image->sections[i].type == type)
			symbols = &image->sections[i];
	if (!symbols)
		return err_set(err, -ENOENT, "the ELF file has no symbol table");
	if (symbols->link >= image->n_sections)
		return err_set(err, -EBADMSG, "damaged ELF file: symbols without names");
	strings = &image->sections[symbols->link];
	if (strings->type != SHT_STRTAB || !elf_table_fits(image, symbols) ||
	    !elf_table_fits(image, strings))
		return err_set(err, -EBADMSG, "damaged ELF file: its symbol table is truncated");
	if (symbols->size > ELF_MAX_TABLE_BYTES || strings->size > ELF_MAX_TABLE_BYTES)
		return err_set(err, -E2BIG, "the ELF file's symbol table is over %llu MB",
			       (unsigned long long)(ELF_MAX_TABLE_BYTES >> 20));
	*ret = (struct elf_symtab){.symbols = symbols, .strings = strings};
	return 0;
}

struct elf_symtab_reader elf_symtab_read(const struct elf_image *image,
					 const struct elf_symtab *table, void *memory, size_t size)
{
	return (struct elf_symtab_reader){
		.image = image,
		.off = table->symbols->offset,
		.left = table->symbols->size / sizeof(Elf64_Sym),
		.batch = memory,
		.cap = size / sizeof(Elf64_Sym),
	};
}

ssize_t elf_symtab_next(struct elf_symtab_reader *reader, struct err *err)
{
	size_t n = MIN(reader->left, reader->cap);

	if (n &&
	    elf_image_read(reader->image, reader->off, reader->batch, n * sizeof(Elf64_Sym)) < 0)
		return err_set(err, -EBADMSG, "cannot read the symbols of an ELF file: truncated");
	reader->off += n * sizeof(Elf64_Sym);
	reader->left -= n;
	return (ssize_t)n;
}
