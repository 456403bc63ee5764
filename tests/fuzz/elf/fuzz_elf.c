/*
 * tests/fuzz/elf/fuzz_elf.c: any bytes as an ELF file: opened, walked, searched for symbols, and
 * every function looked up.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "elf/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_functions(const struct elf_image *image)
{
	_cleanup_(elf_functions_freep) struct elf_functions *functions = NULL;
	uint64_t start;

	if (elf_functions_load(image, &functions, NULL) < 0)
		return;
	for (uint64_t addr = 0; addr < 0x3000; addr += 0x7f) {
		const char *name = elf_functions_lookup(functions, addr, 0, &start);

		if (name && (start > addr || strlen(name) == 0))
			__builtin_trap();
	}
	(void)elf_functions_lookup(functions, UINT64_MAX, 0, NULL);
}

static void use_symbols(const struct elf_image *image)
{
	struct elf_symbol wanted[] = {
		{.name = "main"}, {.name = "runtime.mbuckets"}, {.name = "n"}};
	int r = elf_symbols_find(image, wanted, ARRAY_SIZE(wanted), NULL);
	int found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		found += wanted[i].value != 0;
	if (r >= 0 && r != found)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	char id[129];
	size_t names = 0;

	if (elf_image_open_bytes(view_of(data, size), &image, NULL) < 0)
		return 0;
	for (size_t i = 0; i < image->n_sections; i++)
		names += strlen(image->sections[i].name);
	if (names && !elf_image_section(image, image->sections[image->n_sections - 1].name))
		__builtin_trap();
	if (elf_image_build_id(image, id, sizeof(id)) && strlen(id) % 2)
		__builtin_trap();
	if (elf_image_go_build_id(image, id, sizeof(id)) && !id[0])
		__builtin_trap();
	use_symbols(image);
	use_functions(image);
	return 0;
}
