/*
 * tests/fuzz/elf/fuzz_minidebug.c: any bytes as the section .gnu_debugdata, and what comes out of
 * it as an ELF file.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/minidebug.h"
#include "elf/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct view bytes)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_(elf_functions_freep) struct elf_functions *functions = NULL;

	if (elf_image_open_bytes(bytes, &image, NULL) < 0 ||
	    elf_functions_load(image, &functions, NULL) < 0)
		return;
	for (uint64_t addr = 0; addr < 0x3000; addr += 0x7f)
		(void)elf_functions_lookup(functions, addr, 0, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_section section = {.name = ".gnu_debugdata", .type = SHT_PROGBITS, .size = size};
	struct elf_image image = {.sections = &section,
				  .n_sections = 1,
				  .fd = -1,
				  .bytes = view_of(data, size),
				  .size = size};
	struct buf out = {0};

	if (elf_minidebug_read(&image, &out, NULL) < 0) {
		if (out.data)
			__builtin_trap();
		return 0;
	}
	if (out.len > ELF_MINIDEBUG_MAX_BYTES)
		__builtin_trap();
	use(buf_view(&out));
	buf_release(&out);
	return 0;
}
