/* tests/unit/elf/test_symbols.c: symbol tables forged in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "elf/symbols.h"

enum {
	TEXT = 1,
	DATA = 2,
	N_SECTIONS = 5,
};

/* A file under construction: strings and symbols grow, then everything is laid out. */
struct table {
	struct buf strings;
	struct buf symbols;
	struct buf file;
	struct elf_image *image;
	uint32_t type; /* SHT_SYMTAB or SHT_DYNSYM */
};

static struct table table_new(void)
{
	struct table t = {.type = SHT_SYMTAB};
	Elf64_Sym none = {0};

	assert_int_equal(buf_append_byte(&t.strings, 0), 0);
	assert_int_equal(buf_append(&t.symbols, &none, sizeof(none)), 0);
	return t;
}

static void table_free(struct table *t)
{
	elf_image_close(t->image);
	buf_release(&t->strings);
	buf_release(&t->symbols);
	buf_release(&t->file);
}

static uint32_t add_name(struct table *t, const char *name)
{
	uint32_t off = (uint32_t)t->strings.len;

	assert_int_equal(buf_append(&t->strings, name, strlen(name) + 1), 0);
	return off;
}

static void add_at(struct table *t, uint32_t name, uint8_t info, uint16_t section, uint64_t value,
		   uint64_t size)
{
	Elf64_Sym sym = {.st_name = name,
			 .st_info = info,
			 .st_shndx = section,
			 .st_value = value,
			 .st_size = size};

	assert_int_equal(buf_append(&t->symbols, &sym, sizeof(sym)), 0);
}

static void add(struct table *t, const char *name, uint8_t info, uint64_t value, uint64_t size)
{
	add_at(t, add_name(t, name), info, TEXT, value, size);
}

#define GLOBAL_FUNC ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define WEAK_FUNC ELF64_ST_INFO(STB_WEAK, STT_FUNC)
#define LOCAL_FUNC ELF64_ST_INFO(STB_LOCAL, STT_FUNC)
#define GLOBAL_OBJECT ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)
#define GLOBAL_LABEL ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE)

static void table_open(struct table *t)
{
	Elf64_Ehdr h = {.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_shoff = sizeof(h),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = N_SECTIONS};
	Elf64_Shdr s[N_SECTIONS] = {0};
	struct err err = {0};

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	s[TEXT] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
			       .sh_flags = SHF_EXECINSTR,
			       .sh_addr = 0x1000,
			       .sh_size = 0x1000};
	s[DATA] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addr = 0x3000, .sh_size = 0x1000};
	s[3] = (Elf64_Shdr){.sh_type = t->type,
			    .sh_offset = sizeof(h) + sizeof(s),
			    .sh_size = t->symbols.len,
			    .sh_link = 4};
	s[4] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
			    .sh_offset = sizeof(h) + sizeof(s) + t->symbols.len,
			    .sh_size = t->strings.len};
	assert_int_equal(buf_append(&t->file, &h, sizeof(h)), 0);
	assert_int_equal(buf_append(&t->file, s, sizeof(s)), 0);
	assert_int_equal(buf_append(&t->file, t->symbols.data, t->symbols.len), 0);
	assert_int_equal(buf_append(&t->file, t->strings.data, t->strings.len), 0);
	assert_int_equal(elf_image_open_bytes(buf_view(&t->file), &t->image, &err), 0);
}

static void expect_symbol(struct table *t, const char *name, uint64_t value, uint64_t size)
{
	struct elf_symbol wanted = {.name = name, .value = 99, .size = 99};
	struct err err = {0};

	assert_int_equal(elf_symbols_find(t->image, &wanted, 1, &err), value ? 1 : 0);
	assert_int_equal(wanted.value, value);
	assert_int_equal(wanted.size, size);
}

static void find_takes_values_and_sizes_of_the_wanted_names(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	struct elf_symbol wanted[] = {
		{.name = "runtime.b"}, {.name = "runtime.absent"}, {.name = "runtime.a"}};
	struct err err = {0};

	(void)state;
	add(&t, "runtime.a", GLOBAL_OBJECT, 0x3000, 8);
	add(&t, "runtime.bb", GLOBAL_OBJECT, 0x3010, 16);
	add(&t, "runtime.b", GLOBAL_OBJECT, 0x3020, 24);
	table_open(&t);
	assert_int_equal(elf_symbols_find(t.image, wanted, ARRAY_SIZE(wanted), &err), 2);
	assert_int_equal(wanted[0].value, 0x3020);
	assert_int_equal(wanted[0].size, 24);
	assert_int_equal(wanted[1].value, 0);
	assert_int_equal(wanted[2].value, 0x3000);
	assert_int_equal(wanted[2].size, 8);
}

static void find_takes_a_name_that_is_the_tail_of_another(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	uint32_t off;

	(void)state;
	off = add_name(&t, "my_runtime.tail");
	add_at(&t, off, GLOBAL_FUNC, TEXT, 0x1100, 1);
	add_at(&t, off + 3, GLOBAL_FUNC, TEXT, 0x1200, 2);
	add_at(&t, off + 11, GLOBAL_FUNC, TEXT, 0x1300, 3);
	table_open(&t);
	expect_symbol(&t, "my_runtime.tail", 0x1100, 1);
	expect_symbol(&t, "runtime.tail", 0x1200, 2);
	expect_symbol(&t, "tail", 0x1300, 3);
	expect_symbol(&t, "time.tail", 0, 0); /* a tail, but no symbol points there */
	expect_symbol(&t, "il", 0, 0);
}

static void find_takes_a_later_copy_of_the_name_too(void **state)
{
	_cleanup_(table_free) struct table t = table_new();

	(void)state;
	(void)add_name(&t, "twice");
	add(&t, "other", GLOBAL_FUNC, 0x1100, 1);
	add(&t, "twice", GLOBAL_FUNC, 0x1200, 2);
	table_open(&t);
	expect_symbol(&t, "twice", 0x1200, 2);
}

static void find_works_when_names_are_not_in_the_order_of_symbols(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	uint32_t a = add_name(&t, "aaaa"), b = add_name(&t, "bbbb"), c = add_name(&t, "cccc");

	(void)state;
	add_at(&t, c, GLOBAL_FUNC, TEXT, 0x1300, 3);
	add_at(&t, b, GLOBAL_FUNC, TEXT, 0x1200, 2);
	add_at(&t, a, GLOBAL_FUNC, TEXT, 0x1100, 1);
	table_open(&t);
	expect_symbol(&t, "aaaa", 0x1100, 1);
	expect_symbol(&t, "bbbb", 0x1200, 2);
	expect_symbol(&t, "cccc", 0x1300, 3);
}

static void find_prefers_global_over_weak_over_local(void **state)
{
	_cleanup_(table_free) struct table t = table_new();

	(void)state;
	add(&t, "same", LOCAL_FUNC, 0x1100, 1);
	add(&t, "same", WEAK_FUNC, 0x1200, 2);
	add(&t, "weak", LOCAL_FUNC, 0x1300, 3);
	add(&t, "same", GLOBAL_FUNC, 0x1400, 4);
	add(&t, "weak", WEAK_FUNC, 0x1500, 5);
	add(&t, "local", LOCAL_FUNC, 0x1600, 6);
	add(&t, "local", LOCAL_FUNC, 0x1700, 7);
	table_open(&t);
	expect_symbol(&t, "same", 0x1400, 4);
	expect_symbol(&t, "weak", 0x1500, 5);
	expect_symbol(&t, "local", 0x1600, 6);
}

static void find_skips_undefined_symbols_files_and_sections(void **state)
{
	_cleanup_(table_free) struct table t = table_new();

	(void)state;
	add_at(&t, add_name(&t, "undefined"), GLOBAL_FUNC, SHN_UNDEF, 0x1100, 1);
	add(&t, "file.c", ELF64_ST_INFO(STB_LOCAL, STT_FILE), 0x1100, 0);
	add(&t, "thread", ELF64_ST_INFO(STB_GLOBAL, STT_TLS), 0x8, 8);
	table_open(&t);
	expect_symbol(&t, "undefined", 0, 0);
	expect_symbol(&t, "file.c", 0, 0);
	expect_symbol(&t, "thread", 0, 0);
}

static void find_takes_names_of_every_length_at_every_offset(void **state)
{
	/* 200,000 bytes of names: wherever two pieces of reading meet, some name straddles. */
	_cleanup_(table_free) struct table t = table_new();
	char name[64];

	(void)state;
	for (unsigned int i = 0; i < 8000; i++) {
		(void)snprintf(name, sizeof(name), "%.*s%u", (int)(i % 37),
			       "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", i);
		add(&t, name, i % 3 ? GLOBAL_FUNC : LOCAL_FUNC, 0x1000 + i, i);
	}
	table_open(&t);
	for (unsigned int i = 0; i < 8000; i += 1000) {
		struct elf_symbol wanted[1000];
		struct err err = {0};

		for (unsigned int k = 0; k < 1000; k++) {
			(void)snprintf(name, sizeof(name), "%.*s%u", (int)((i + k) % 37),
				       "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
				       i + k);
			wanted[k] = (struct elf_symbol){.name = strdup(name)};
		}
		assert_int_equal(elf_symbols_find(t.image, wanted, 1000, &err), 1000);
		for (unsigned int k = 0; k < 1000; k++) {
			assert_int_equal(wanted[k].value, 0x1000 + i + k);
			free((char *)wanted[k].name);
		}
	}
}

static void find_takes_a_name_across_the_border_of_two_chunks(void **state)
{
	/* The chunk is 64 KB: put one name at each distance around the border. */
	for (size_t before = 0; before <= 16; before++) {
		_cleanup_(table_free) struct table t = table_new();

		(void)state;
		while (t.strings.len < 65536 - before)
			assert_int_equal(buf_append_byte(&t.strings, 'x'), 0);
		t.strings.data[t.strings.len - 1] = 0;
		add(&t, "border.name.here", LOCAL_FUNC, 0x1234, 5);
		table_open(&t);
		expect_symbol(&t, "border.name.here", 0x1234, 5);
	}
}

static void find_bounds_what_a_forged_table_costs(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	struct elf_symbol wanted = {.name = "x"};
	struct err err = {0};

	(void)state;
	for (int i = 0; i < 20000; i++)
		(void)add_name(&t, "x");
	table_open(&t);
	assert_int_equal(elf_symbols_find(t.image, &wanted, 1, &err), -E2BIG);
	assert_non_null(strstr(err.text, "damaged"));
}

static void find_says_enoent_without_a_symbol_table(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	struct elf_symbol wanted = {.name = "x"};
	struct err err = {0};

	(void)state;
	t.type = SHT_DYNSYM;
	table_open(&t);
	assert_int_equal(elf_symbols_find(t.image, &wanted, 1, &err), -ENOENT);
}

static void find_refuses_a_table_that_is_cut_off(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	struct elf_symbol wanted = {.name = "name"};
	struct err err = {0};

	(void)state;
	add(&t, "name", GLOBAL_FUNC, 0x1000, 1);
	table_open(&t);
	t.image->sections[4].size += 1;
	assert_int_equal(elf_symbols_find(t.image, &wanted, 1, &err), -EBADMSG);
	t.image->sections[4].size = UINT64_MAX;
	assert_int_equal(elf_symbols_find(t.image, &wanted, 1, &err), -EBADMSG);
	t.image->sections[3].link = 77;
	assert_int_equal(elf_symbols_find(t.image, &wanted, 1, &err), -EBADMSG);
}

static void expect_function(const struct elf_functions *f, uint64_t addr, const char *name,
			    uint64_t start)
{
	uint64_t found = 0;
	const char *got = elf_functions_lookup(f, addr, 0, &found);

	if (!name) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, name);
	assert_int_equal(found, start);
}

static struct elf_functions *functions_of(struct table *t)
{
	struct elf_functions *f = NULL;
	struct err err = {0};

	table_open(t);
	assert_int_equal(elf_functions_load(t->image, &f, &err), 0);
	return f;
}

static void lookup_covers_a_function_and_not_the_gap_behind_it(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	_cleanup_(elf_functions_freep) struct elf_functions *f = NULL;

	(void)state;
	add(&t, "second", GLOBAL_FUNC, 0x1200, 0x10);
	add(&t, "first", LOCAL_FUNC, 0x1100, 0x10);
	add(&t, "data", GLOBAL_OBJECT, 0x1110, 0x10);
	add_at(&t, add_name(&t, "elsewhere"), GLOBAL_FUNC, SHN_UNDEF, 0x1300, 0x10);
	f = functions_of(&t);
	expect_function(f, 0x10ff, NULL, 0);
	expect_function(f, 0x1100, "first", 0x1100);
	expect_function(f, 0x110f, "first", 0x1100);
	expect_function(f, 0x1110, NULL, 0);
	expect_function(f, 0x1200, "second", 0x1200);
	expect_function(f, 0x1210, NULL, 0);
	expect_function(f, 0x1300, NULL, 0);
	expect_function(f, UINT64_MAX, NULL, 0);
}

static void lookup_lets_a_function_without_size_reach_to_the_next(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	_cleanup_(elf_functions_freep) struct elf_functions *f = NULL;

	(void)state;
	add(&t, "label", GLOBAL_LABEL, 0x1100, 0);
	add(&t, "next", GLOBAL_FUNC, 0x1200, 0);
	add_at(&t, add_name(&t, "variable"), GLOBAL_LABEL, DATA, 0x3000, 0);
	f = functions_of(&t);
	expect_function(f, 0x11ff, "label", 0x1100);
	expect_function(f, 0x1200, "next", 0x1200);
	expect_function(f, 0x1fff, "next", 0x1200); /* to the end of the section */
	expect_function(f, 0x2000, NULL, 0);
	expect_function(f, 0x3000, NULL, 0); /* a label, but of data */
}

/* What follows has no name, but an entry in the unwind information; or is simply far away. */
static void lookup_lets_a_function_without_size_swallow_nothing(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	_cleanup_(elf_functions_freep) struct elf_functions *f = NULL;
	uint64_t start;

	(void)state;
	add(&t, "label", GLOBAL_LABEL, 0x1100, 0);
	add(&t, "sized", GLOBAL_FUNC, 0x1400, 0x100);
	f = functions_of(&t);
	assert_string_equal(elf_functions_lookup(f, 0x11f0, 0x1100, &start), "label");
	assert_null(elf_functions_lookup(f, 0x11f0, 0x1180, &start));
	/* A size says more than an entry. */
	assert_string_equal(elf_functions_lookup(f, 0x14f0, 0x1480, &start), "sized");
	t.image->sections[TEXT].size = 1 << 20;
	elf_functions_free(f);
	assert_int_equal(elf_functions_load(t.image, &f, NULL), 0);
	assert_null(elf_functions_lookup(f, 0x1100 + (1 << 19), 0, &start));
}

static void lookup_goes_back_to_the_function_around_a_smaller_one(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	_cleanup_(elf_functions_freep) struct elf_functions *f = NULL;

	(void)state;
	add(&t, "outer", GLOBAL_FUNC, 0x1100, 0x100);
	add(&t, "inner", LOCAL_FUNC, 0x1140, 0x10);
	add(&t, "label", ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), 0x1180, 0);
	add(&t, "$x", ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), 0x1190, 0);
	f = functions_of(&t);
	expect_function(f, 0x1140, "inner", 0x1140);
	expect_function(f, 0x1150, "outer", 0x1100);
	expect_function(f, 0x1188, "outer", 0x1100);
	expect_function(f, 0x1195, "outer", 0x1100);
	expect_function(f, 0x1200, "label", 0x1180);
}

static void lookup_prefers_the_global_name_of_an_address(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	_cleanup_(elf_functions_freep) struct elf_functions *f = NULL;

	(void)state;
	add(&t, "__local_name", LOCAL_FUNC, 0x1100, 0x20);
	add(&t, "weak_name", WEAK_FUNC, 0x1100, 0x10);
	add(&t, "global_name", GLOBAL_FUNC, 0x1100, 0x10);
	add(&t, "zzz_weak", WEAK_FUNC, 0x1200, 0x10);
	add(&t, "aaa_weak", WEAK_FUNC, 0x1200, 0x10);
	f = functions_of(&t);
	expect_function(f, 0x1100, "global_name", 0x1100);
	expect_function(f, 0x111f, "global_name", 0x1100); /* as far as the longest of them */
	expect_function(f, 0x1200, "zzz_weak", 0x1200);	   /* equals: the first in the table */
}

static void functions_come_from_dynsym_when_that_is_all(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	_cleanup_(elf_functions_freep) struct elf_functions *f = NULL;

	(void)state;
	t.type = SHT_DYNSYM;
	add(&t, "exported", GLOBAL_FUNC, 0x1100, 0x10);
	f = functions_of(&t);
	expect_function(f, 0x1105, "exported", 0x1100);
}

static void functions_survive_absurd_symbols(void **state)
{
	_cleanup_(table_free) struct table t = table_new();
	_cleanup_(elf_functions_freep) struct elf_functions *f = NULL;

	(void)state;
	add(&t, "endless", GLOBAL_FUNC, 0x1100, UINT64_MAX);
	add_at(&t, UINT32_MAX, GLOBAL_FUNC, TEXT, 0x1200, 0x10);
	add_at(&t, add_name(&t, "section"), GLOBAL_FUNC, 0xff00, UINT64_MAX, 0);
	add_at(&t, add_name(&t, "beyond"), GLOBAL_FUNC, TEXT, 0x9000, 0);
	f = functions_of(&t);
	expect_function(f, 0x1208, "endless", 0x1100);
	expect_function(f, 0x9000, "endless", 0x1100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_takes_values_and_sizes_of_the_wanted_names),
		cmocka_unit_test(find_takes_a_name_that_is_the_tail_of_another),
		cmocka_unit_test(find_takes_a_later_copy_of_the_name_too),
		cmocka_unit_test(find_works_when_names_are_not_in_the_order_of_symbols),
		cmocka_unit_test(find_prefers_global_over_weak_over_local),
		cmocka_unit_test(find_skips_undefined_symbols_files_and_sections),
		cmocka_unit_test(find_takes_names_of_every_length_at_every_offset),
		cmocka_unit_test(find_takes_a_name_across_the_border_of_two_chunks),
		cmocka_unit_test(find_bounds_what_a_forged_table_costs),
		cmocka_unit_test(find_says_enoent_without_a_symbol_table),
		cmocka_unit_test(find_refuses_a_table_that_is_cut_off),
		cmocka_unit_test(lookup_covers_a_function_and_not_the_gap_behind_it),
		cmocka_unit_test(lookup_lets_a_function_without_size_reach_to_the_next),
		cmocka_unit_test(lookup_lets_a_function_without_size_swallow_nothing),
		cmocka_unit_test(lookup_goes_back_to_the_function_around_a_smaller_one),
		cmocka_unit_test(lookup_prefers_the_global_name_of_an_address),
		cmocka_unit_test(functions_come_from_dynsym_when_that_is_all),
		cmocka_unit_test(functions_survive_absurd_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
