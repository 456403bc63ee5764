/*
 * tests/fuzz/cpu/fuzz_python.c: any bytes as the memory of a Python program, with a code object at
 * its start; as a table of lines; as an interpreter's file. The first bytes choose version and
 * instruction.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "cpu/interp/python/code.h"
#include "cpu/interp/python/line.h"
#include "cpu/interp/python/symbols.h"
#include "mem_fake.h"

#define CODE_AT 0x1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What follows the first byte of a character; traps for what is not UTF-8. */
static size_t further_bytes(uint8_t c)
{
	if (c >= 0xf5 || (c >= 0x80 && c < 0xc2))
		__builtin_trap();
	return c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
}

static void check_text(const char text[PYTHON_TEXT_MAX])
{
	size_t len = strnlen(text, PYTHON_TEXT_MAX), left = 0;

	if (len == PYTHON_TEXT_MAX)
		__builtin_trap();
	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];

		if (c < 0x20 || c == 0x7f || (left && (c & 0xc0) != 0x80))
			__builtin_trap();
		left = left ? left - 1 : further_bytes(c);
	}
	if (left)
		__builtin_trap();
}

static void check_line(int64_t line, int64_t first_line)
{
	if (line != first_line && (line < 0 || line > INT32_MAX))
		__builtin_trap();
}

static void read_code(const struct python_layout *layout, uint32_t instr, const uint8_t *data,
		      size_t size)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct python_code code;
	struct err err = {};
	uint64_t type = 0;

	if (proc_mem_open_fake(&mem, NULL) < 0 || proc_mem_fake_add(mem, CODE_AT, data, size) < 0)
		__builtin_trap();
	/* Its own, so that most inputs are not refused at once. */
	if (size >= 16)
		memcpy(&type, data + 8, sizeof(type));
	if (python_code_read(mem, layout, type, CODE_AT, instr, &code, &err) < 0) {
		if (!err.text[0])
			__builtin_trap();
		return;
	}
	check_text(code.name);
	check_text(code.file);
	if (code.first_line < 0)
		__builtin_trap();
	check_line(code.line, code.first_line);
}

static void read_symbols(unsigned int minor, const uint8_t *data, size_t size)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	char path[] = "/usr/bin/python3.__";
	struct python_symbols symbols;

	if (elf_image_open_bytes(view_of(data, size), &image, NULL) < 0)
		return;
	(void)snprintf(path, sizeof(path), "/usr/bin/python3.%u", minor);
	python_symbols_read(image, path, &symbols);
	if (symbols.minor ? symbols.minor != minor || !symbols.runtime || !symbols.code_type
			  : symbols.runtime || symbols.code_type)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int minor;
	uint32_t instr;

	if (size < 4)
		return 0;
	minor = PYTHON_MINOR_MIN + data[0] % (PYTHON_MINOR_MAX - PYTHON_MINOR_MIN + 1);
	instr = data[3] == UINT8_MAX ? PYTHON_NOWHERE : data[1] | (uint32_t)data[2] << 8;
	read_code(python_layout(minor), instr, data + 4, size - 4);
	check_line(python_line(minor, data + 4, size - 4, data[3], instr), data[3]);
	read_symbols(minor, data + 4, size - 4);
	return 0;
}
