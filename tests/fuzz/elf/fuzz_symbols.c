/*
 * tests/fuzz/elf/fuzz_symbols.c: any bytes as an ELF file, in memory and as a file, whose
 * functions, unwind entries and debug link are asked for.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "elf/debugfile.h"
#include "elf/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The names of all addresses, as one number. */
static uint64_t use(const struct elf_image *image)
{
	_cleanup_(elf_functions_freep) struct elf_functions *functions = NULL;
	struct elf_image *debug = NULL;
	uint64_t sum = 0;

	if (elf_functions_load(image, &functions, NULL) == 0)
		(void)elf_functions_memory(functions);
	for (uint64_t addr = 0; addr < 0x3000; addr += 0x3d) {
		uint64_t start = 0;
		const char *name =
			functions ? elf_functions_lookup(functions, addr, addr & 0xff0, &start)
				  : NULL;

		if (name && (start > addr || name[0] == 0))
			__builtin_trap();
		for (size_t i = 0; name && name[i]; i++)
			sum = sum * 31 + (uint8_t)name[i];
		if (elf_entry_start(image, addr, &start) == 0 && start > addr)
			__builtin_trap();
	}
	if (elf_debugfile_open("/nonexistent", "/bin/x", image, &debug, NULL) == 0)
		__builtin_trap();
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_image_closep) struct elf_image *bytes = NULL, *file = NULL;
	_cleanup_close_ int fd = -1;

	if (elf_image_open_bytes(view_of(data, size), &bytes, NULL) < 0)
		return 0;
	fd = memfd_create("elf", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	if (elf_image_open_fd(fd, &file, NULL) < 0)
		__builtin_trap();
	if (use(bytes) != use(file))
		__builtin_trap();
	return 0;
}
