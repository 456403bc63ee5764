/* tests/unit/test_python_symbols.c: interpreters, and files that only have their name. */
#include "cpu/interp/python/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/interp/python/layout.h"

static void interpreters_are_known_by_their_names(void **state)
{
	static const char *const yes[] = {
		"python3.9",	    "/usr/bin/python3.11",	     "/opt/venv/bin/python3.13",
		"libpython3.10.so", "/usr/lib/libpython3.11.so.1.0", "./libpython3.12.so.1",
	};
	static const char *const no[] = {
		"",
		"/",
		"python",
		"python3",
		"python3.",
		"python3.8",
		"python3.14",
		"python3.011",
		"python3.111",
		"python2.7",
		"python3.11-dbg",
		"python3.11d",
		"python3.13t",
		"python3.11/",
		"python3.11/bash",
		"xpython3.11",
		"ipython3.11",
		"libpython3.so",
		"libpython3.11",
		"libpython3.11d.so.1.0",
		"libpython3.13t.so.1.0",
		"libpython3.7m.so.1.0",
		"libpython3.11.sox",
		"libpython3.11.a",
		"python3.11.so",
		"python3.4294967307",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		if (!python_is_named(yes[i]))
			fail_msg("%s is one", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (python_is_named(no[i]))
			fail_msg("%s is none", no[i]);
}

static struct python_symbols read_as(const char *file, const char *path)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct python_symbols symbols;
	struct err err = {0};

	assert_true(fd >= 0);
	assert_int_equal(elf_image_open_fd(fd, &image, &err), 0);
	memset(&symbols, 0xa5, sizeof(symbols));
	python_symbols_read(image, path, &symbols);
	return symbols;
}

static uint64_t nm_value(const char *file, const char *name)
{
	char command[PATH_MAX + 64], line[256];
	uint64_t value = 0;
	FILE *f;

	(void)snprintf(command, sizeof(command), "nm -D --defined-only %s", file);
	f = popen(command, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		const char *space = strrchr(line, ' ');

		line[strcspn(line, "\n")] = 0;
		if (space && strcmp(space + 1, name) == 0)
			value = strtoull(line, NULL, 16);
	}
	assert_int_equal(pclose(f), 0);
	return value;
}

static void variables_of_the_system_python_are_found(void **state)
{
	struct python_symbols symbols;
	char path[PATH_MAX], named[64];

	(void)state;
	assert_non_null(realpath("/usr/bin/python3", path));
	symbols = read_as(path, path);
	(void)snprintf(named, sizeof(named), "/python3.%u", symbols.minor);
	assert_string_equal(strrchr(path, '/'), named);
	assert_true(symbols.runtime != 0 && symbols.code_type != 0);
	assert_int_equal(symbols.runtime, nm_value(path, "_PyRuntime"));
	assert_int_equal(symbols.code_type, nm_value(path, "PyCode_Type"));
}

static void a_python_of_another_name_is_refused(void **state)
{
	static const char *const names[] = {"python3.9",  "python3.10", "python3.12",
					    "python3.13", "python3",	"python3.11-dbg"};
	char path[PATH_MAX];

	(void)state;
	assert_non_null(realpath("/usr/bin/python3", path));
	assert_string_equal(strrchr(path, '/'), "/python3.11");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct python_symbols symbols = read_as(path, names[i]);

		assert_int_equal(symbols.minor, 0);
		assert_int_equal(symbols.runtime, 0);
		assert_int_equal(symbols.code_type, 0);
	}
}

static void what_is_no_python_is_refused(void **state)
{
	(void)state;
	assert_int_equal(read_as("/bin/sh", "/bin/sh").minor, 0);
	assert_int_equal(read_as("/bin/sh", "/usr/bin/python3.11").minor, 0);
	assert_int_equal(read_as("/bin/sh", "/usr/lib/libpython3.9.so").minor, 0);
}

enum {
	VADDR = 0x10000,
	N_OFFSETS = 44,
};

/* A file with the three variables, in .symtab or .dynsym. */
struct forged {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[3];
	Elf64_Sym symbols[4];
	char strings[40];
	uint64_t version;
	uint64_t offsets[N_OFFSETS];
};

#define IN_FILE(field) offsetof(struct forged, field)

static Elf64_Sym symbol(size_t name, size_t offset)
{
	return (Elf64_Sym){.st_name = (Elf64_Word)name,
			   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			   .st_shndx = 1,
			   .st_value = VADDR + offset,
			   .st_size = 8};
}

/* What 3.13 tells debuggers. */
static void forge_offsets(uint64_t *o, const struct python_layout *l)
{
	memcpy(&o[0], "xdebugpy", 8);
	o[1] = 0x030d00f0;
	o[5] = l->runtime_interpreters;
	o[8] = l->interpreter_next;
	o[9] = l->interpreter_threads;
	o[21] = l->thread_next;
	o[23] = l->thread_frame;
	o[24] = l->thread_id;
	o[29] = l->frame_previous;
	o[30] = l->frame_code;
	o[31] = l->frame_instr;
	o[33] = l->frame_entry;
	o[35] = l->code_filename;
	o[37] = l->code_name;
	o[38] = l->code_lines;
	o[39] = l->code_firstlineno;
	o[43] = l->code_instrs;
}

static struct forged forge(uint32_t table, uint64_t version)
{
	static const char strings[] = "\0_PyRuntime\0PyCode_Type\0Py_Version";
	struct forged f = {
		.header = {.e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_phoff = IN_FILE(segment),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shoff = IN_FILE(sections),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 3},
		.segment = {.p_type = PT_LOAD,
			    .p_vaddr = VADDR,
			    .p_filesz = sizeof(f),
			    .p_memsz = sizeof(f)},
		.sections = {[1] = {.sh_type = table,
				    .sh_offset = IN_FILE(symbols),
				    .sh_size = sizeof(f.symbols),
				    .sh_link = 2},
			     [2] = {.sh_type = SHT_STRTAB,
				    .sh_offset = IN_FILE(strings),
				    .sh_size = sizeof(strings)}},
		.symbols = {[1] = symbol(1, IN_FILE(offsets)),
			    [2] = symbol(12, IN_FILE(header)),
			    [3] = symbol(24, IN_FILE(version))},
		.version = version,
	};

	memcpy(f.header.e_ident, ELFMAG, SELFMAG);
	f.header.e_ident[EI_CLASS] = ELFCLASS64;
	f.header.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(f.strings, strings, sizeof(strings));
	forge_offsets(f.offsets, python_layout(13));
	return f;
}

static unsigned int minor_of(const struct forged *f, const char *path)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct python_symbols symbols;

	assert_int_equal(elf_image_open_bytes(view_of(f, sizeof(*f)), &image, NULL), 0);
	python_symbols_read(image, path, &symbols);
	if (symbols.minor) {
		assert_int_equal(symbols.runtime, VADDR + IN_FILE(offsets));
		assert_int_equal(symbols.code_type, VADDR + IN_FILE(header));
	}
	return symbols.minor;
}

static void symbols_of_either_table_are_taken(void **state)
{
	struct forged f = forge(SHT_SYMTAB, 0x030b02f0);

	(void)state;
	assert_int_equal(minor_of(&f, "python3.11"), 11);
	f = forge(SHT_DYNSYM, 0x030c01f0);
	assert_int_equal(minor_of(&f, "libpython3.12.so.1.0"), 12);
	f = forge(SHT_DYNSYM, 0x030d00f0);
	assert_int_equal(minor_of(&f, "python3.13"), 13);
}

static void the_version_in_the_file_must_agree(void **state)
{
	static const uint64_t others[] = {0,	      0x030a00f0,  0x030c00f0,
					  0x020b00f0, 0x1030b00f0, UINT64_MAX};
	struct forged f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		f = forge(SHT_DYNSYM, others[i]);
		assert_int_equal(minor_of(&f, "python3.11"), 0);
	}
	f = forge(SHT_DYNSYM, 0x030b02f0);
	f.symbols[3].st_value = VADDR + sizeof(f) - 7;
	assert_int_equal(minor_of(&f, "python3.11"), 0);
	f.symbols[3].st_value = UINT64_MAX;
	assert_int_equal(minor_of(&f, "python3.11"), 0);
	f.symbols[3].st_value = 1;
	assert_int_equal(minor_of(&f, "python3.11"), 0);
	f = forge(SHT_DYNSYM, 0x030b02f0);
	f.segment.p_offset = UINT64_MAX - 8;
	assert_int_equal(minor_of(&f, "python3.11"), 0);
}

static void old_versions_have_no_version_in_the_file(void **state)
{
	struct forged f = forge(SHT_DYNSYM, 0x030900f0);

	(void)state;
	assert_int_equal(minor_of(&f, "python3.9"), 0);
	f.symbols[3].st_shndx = SHN_UNDEF;
	assert_int_equal(minor_of(&f, "python3.9"), 9);
	assert_int_equal(minor_of(&f, "python3.10"), 10);
	assert_int_equal(minor_of(&f, "python3.11"), 0);
}

static void without_its_variables_it_is_none(void **state)
{
	struct forged f = forge(SHT_DYNSYM, 0x030b02f0);

	(void)state;
	for (size_t i = 1; i <= 2; i++) {
		f = forge(SHT_DYNSYM, 0x030b02f0);
		f.symbols[i].st_shndx = SHN_UNDEF;
		assert_int_equal(minor_of(&f, "python3.11"), 0);
	}
}

static void offsets_that_a_file_publishes_must_agree(void **state)
{
	static const size_t known[] = {0,  1,  2,  5,  8,  9,  21, 23, 24,
				       29, 30, 31, 33, 35, 37, 38, 39, 43};
	struct forged f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		f = forge(SHT_DYNSYM, 0x030d00f0);
		f.offsets[known[i]] ^= known[i] == 1 ? 1 << 16 : 1;
		assert_int_equal(minor_of(&f, "python3.13"), 0);
	}
	/* They end with the segment. */
	f = forge(SHT_DYNSYM, 0x030d00f0);
	f.segment.p_filesz--;
	assert_int_equal(minor_of(&f, "python3.13"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreters_are_known_by_their_names),
		cmocka_unit_test(variables_of_the_system_python_are_found),
		cmocka_unit_test(a_python_of_another_name_is_refused),
		cmocka_unit_test(what_is_no_python_is_refused),
		cmocka_unit_test(symbols_of_either_table_are_taken),
		cmocka_unit_test(the_version_in_the_file_must_agree),
		cmocka_unit_test(old_versions_have_no_version_in_the_file),
		cmocka_unit_test(without_its_variables_it_is_none),
		cmocka_unit_test(offsets_that_a_file_publishes_must_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
