/*
 * tests/fuzz/elf/fuzz_eh_frame.c: any bytes as the unwind information of a program. The first byte
 * says how it is found: by a section or by a segment, as .eh_frame or as .debug_frame; and whether
 * the first bytes of the rest are a search table as well, by which a part of it is read.
 */
#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/unwind/unwind.h"
#include "unwind_table.h"

#define FILE_NAMES 0x100
#define FILE_SECTIONS 0x200
#define FILE_HDR 0x300
#define FILE_ENTRIES 0x400
#define HDR_BYTES 12
#define HDR_MAX_ROWS 28
#define TEXT ((uint64_t)0x10000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_file(uint8_t *file, const uint8_t *data, size_t size, uint8_t how)
{
	uint32_t n_rows = how & 4 ? (uint32_t)MIN(size / 8, (size_t)HDR_MAX_ROWS) : 0;
	Elf64_Ehdr h = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shoff = how & 1 ? FILE_SECTIONS : 0,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	/* All is text: the entries, too, so that few functions are outside of it. */
	Elf64_Phdr ph[] = {{.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_vaddr = TEXT,
			    .p_filesz = FILE_ENTRIES + size,
			    .p_memsz = (uint64_t)1 << 33},
			   {.p_type = how & 1 && !n_rows ? PT_NULL : PT_GNU_EH_FRAME,
			    .p_offset = FILE_HDR,
			    .p_vaddr = TEXT + FILE_HDR,
			    .p_filesz = HDR_BYTES + 8 * n_rows}};
	Elf64_Shdr sh[] = {{0},
			   {.sh_name = how & 2 ? 11 : 1,
			    .sh_type = SHT_PROGBITS,
			    .sh_addr = TEXT + FILE_ENTRIES,
			    .sh_offset = FILE_ENTRIES,
			    .sh_size = size},
			   {.sh_type = SHT_STRTAB, .sh_offset = FILE_NAMES, .sh_size = 32}};
	uint32_t hdr[] = {0x3b031b01, FILE_ENTRIES - FILE_HDR - 4, n_rows};

	memset(file, 0, FILE_ENTRIES);
	memcpy(file, &h, sizeof(h));
	memcpy(file + sizeof(h), ph, sizeof(ph));
	memcpy(file + FILE_NAMES, "\0.eh_frame\0.debug_frame", 24);
	memcpy(file + FILE_SECTIONS, sh, sizeof(sh));
	memcpy(file + FILE_HDR, hdr, sizeof(hdr));
	memcpy(file + FILE_HDR + HDR_BYTES, data, 8 * (size_t)n_rows);
	memcpy(file + FILE_ENTRIES, data, size);
}

static int check_rows(void *context, const struct elf_unwind_row *rows, size_t n)
{
	uint64_t *last = context;

	for (size_t i = 0; i < n; i++) {
		assert(rows[i].vaddr > *last);
		*last = rows[i].vaddr;
	}
	return 0;
}

/* Parts of it, wherever they begin. */
static void check_parts(const struct elf_image *image)
{
	for (uint64_t at = TEXT; at < TEXT + 0x10000; at += 0x2345) {
		const struct elf_unwind_range range = {.from = at, .to = at + 0x1234};
		uint64_t last = 0;
		const struct elf_unwind_sink sink = {.rows = check_rows, .context = &last};
		struct err err = {};
		int r = elf_unwind_stream(image, &range, &sink, &err);

		assert((r < 0) == (err.text[0] != 0));
	}
}

static void check(const struct elf_unwind_table *t)
{
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct elf_unwind_row *row = &t->rows[i];
		struct elf_unwind_rule found = unwind_table_lookup(t, row->vaddr);

		assert(row->rule.cfa <= ELF_UNWIND_UNSUPPORTED);
		assert(memcmp(&found, &row->rule, sizeof(found)) == 0);
		assert(i == 0 || row[-1].vaddr < row->vaddr);
		assert(i == 0 || memcmp(&row[-1].rule, &row->rule, sizeof(row->rule)) != 0);
	}
	assert(t->n_rows == 0 || t->rows[t->n_rows - 1].rule.cfa == ELF_UNWIND_NONE);
	assert(t->n_unsupported <= t->n_starts);
	for (size_t i = 0; i < t->n_starts; i++) {
		assert(i == 0 || t->starts[i - 1] < t->starts[i]);
		assert(unwind_table_start(t, t->starts[i]) == t->starts[i]);
		assert(unwind_table_lookup(t, t->starts[i]).cfa != ELF_UNWIND_NONE);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_free_ uint8_t *file = NULL;
	struct elf_unwind_table table = {0};
	struct err err = {};
	int r;

	if (size == 0)
		return 0;
	size--;
	file = malloc(FILE_ENTRIES + size);
	if (!file)
		return 0;
	make_file(file, data + 1, size, data[0]);
	r = elf_image_open_bytes(view_of(file, FILE_ENTRIES + size), &image, NULL);
	assert(r == 0);
	r = elf_unwind_compile(image, &table, &err);
	assert((r < 0) == (err.text[0] != 0));
	check(&table);
	elf_unwind_table_release(&table);
	check_parts(image);
	return 0;
}
