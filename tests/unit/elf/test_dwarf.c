/*
 * tests/unit/elf/test_dwarf.c: DWARF forged in memory: what is right is found, what is wrong ends.
 *
 *   outer            0x1000 .. 0x1100   declared at line 10
 *     inner          0x1010 .. 0x1040   inlined at line 21
 *       leaf         0x1020 .. 0x1030   inlined at line 32
 *   lines            0x1000: 11, 0x1020: 41, 0x1040: 12, up to 0x1200
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "elf/dwarf/const.h"
#include "elf/dwarf/dwarf.h"

#define TEXT 0x1000U
#define TEXT_LEN 0x100000U
#define MAX_BYTES ((size_t)4 << 20)
#define MAX_SECTIONS 8

enum {
	CODE_UNIT = 1,
	CODE_FUNCTION,
	CODE_CALL,
	CODE_DECLARATION,
	CODE_CLONE,
	CODE_BLOCK,
	CODE_NAMESPACE,
	CODE_INDIRECT,
	CODE_SKIPPED, /* with a sibling */
};

struct section {
	const char *name;
	struct buf *bytes;
	uint64_t flags;
};

/* A file under construction. */
struct forge {
	struct buf info, abbrev, line, link, file;
	struct section sections[MAX_SECTIONS];
	size_t n_sections;
	size_t unit; /* where the unit that is being written starts */
	struct elf_image *image;
	struct elf_dwarf *dwarf;
	uint16_t type;
	uint16_t version;
};

static void u8(struct buf *b, unsigned int value)
{
	assert_int_equal(buf_append_byte(b, (uint8_t)value), 0);
}

static void put(struct buf *b, uint64_t value, size_t n)
{
	assert_int_equal(buf_append(b, &value, n), 0);
}

static void set_u32(struct buf *b, size_t off, size_t value)
{
	uint32_t v = (uint32_t)value;

	memcpy(b->data + off, &v, sizeof(v));
}

static void str(struct buf *b, const char *s)
{
	assert_int_equal(buf_append(b, s, strlen(s) + 1), 0);
}

static void abbrev(struct forge *f, unsigned int code, unsigned int tag, bool children,
		   const uint16_t (*specs)[2], size_t n)
{
	u8(&f->abbrev, code);
	assert_int_equal(buf_append_varint(&f->abbrev, tag), 0);
	u8(&f->abbrev, children);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(buf_append_varint(&f->abbrev, specs[i][0]), 0);
		assert_int_equal(buf_append_varint(&f->abbrev, specs[i][1]), 0);
	}
	put(&f->abbrev, 0, 2);
}

#define ABBREV(f, code, tag, children, ...)                                                        \
	do {                                                                                       \
		static const uint16_t specs[][2] = {__VA_ARGS__};                                  \
		abbrev(f, code, tag, children, specs, ARRAY_SIZE(specs));                          \
	} while (0)

static void abbrevs(struct forge *f)
{
	ABBREV(f, CODE_UNIT, DW_TAG_compile_unit, true, {DW_AT_comp_dir, DW_FORM_string},
	       {DW_AT_stmt_list, DW_FORM_data4}, {DW_AT_language, DW_FORM_data2},
	       {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data4});
	ABBREV(f, CODE_FUNCTION, DW_TAG_subprogram, true, {DW_AT_name, DW_FORM_string},
	       {DW_AT_decl_line, DW_FORM_data1}, {DW_AT_low_pc, DW_FORM_addr},
	       {DW_AT_high_pc, DW_FORM_data4});
	ABBREV(f, CODE_CALL, DW_TAG_inlined_subroutine, true, {DW_AT_abstract_origin, DW_FORM_ref4},
	       {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data4},
	       {DW_AT_call_file, DW_FORM_data1}, {DW_AT_call_line, DW_FORM_data1});
	ABBREV(f, CODE_DECLARATION, DW_TAG_subprogram, false, {DW_AT_name, DW_FORM_string},
	       {DW_AT_decl_line, DW_FORM_data1});
	ABBREV(f, CODE_CLONE, DW_TAG_subprogram, false, {DW_AT_abstract_origin, DW_FORM_ref4},
	       {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data4});
	ABBREV(f, CODE_BLOCK, 0x0b, true, {DW_AT_low_pc, DW_FORM_addr});
	ABBREV(f, CODE_NAMESPACE, DW_TAG_namespace, true, {DW_AT_name, DW_FORM_string});
	ABBREV(f, CODE_INDIRECT, DW_TAG_subprogram, false, {DW_AT_name, DW_FORM_indirect});
	ABBREV(f, CODE_SKIPPED, DW_TAG_enumeration_type, true, {DW_AT_sibling, DW_FORM_ref4});
	u8(&f->abbrev, 0);
}

static void unit_begin(struct forge *f, unsigned int language, uint32_t line, uint32_t low,
		       uint32_t len)
{
	f->unit = f->info.len;
	put(&f->info, 0, 4);
	put(&f->info, f->version, 2);
	put(&f->info, 0, 4);
	u8(&f->info, 8);
	u8(&f->info, CODE_UNIT);
	str(&f->info, "/src");
	put(&f->info, line, 4);
	put(&f->info, language, 2);
	put(&f->info, low, 8);
	put(&f->info, len, 4);
}

static void unit_end(struct forge *f)
{
	set_u32(&f->info, f->unit, f->info.len - f->unit - 4);
}

/* Where the next entry will be, for references. */
static uint32_t here(const struct forge *f)
{
	return (uint32_t)(f->info.len - f->unit);
}

static void function(struct forge *f, const char *name, uint64_t low, uint32_t len)
{
	u8(&f->info, CODE_FUNCTION);
	str(&f->info, name);
	u8(&f->info, 10);
	put(&f->info, low, 8);
	put(&f->info, len, 4);
}

static void call(struct forge *f, uint32_t origin, uint64_t low, uint32_t len, unsigned int line)
{
	u8(&f->info, CODE_CALL);
	put(&f->info, origin, 4);
	put(&f->info, low, 8);
	put(&f->info, len, 4);
	u8(&f->info, 1);
	u8(&f->info, line);
}

static uint32_t declaration(struct forge *f, const char *name)
{
	uint32_t off = here(f);

	u8(&f->info, CODE_DECLARATION);
	str(&f->info, name);
	u8(&f->info, 5);
	return off;
}

/* advance_pc and advance_line take one byte here, as long as they are below 0x40. */
static void row(struct buf *b, unsigned int address, unsigned int line)
{
	u8(b, DW_LNS_advance_pc), u8(b, address);
	u8(b, DW_LNS_advance_line), u8(b, line & 0x7f);
	u8(b, DW_LNS_copy);
}

static void set_address(struct buf *b)
{
	u8(b, 0), u8(b, 9), u8(b, DW_LNE_set_address), put(b, TEXT, 8);
}

static void end_sequence(struct buf *b)
{
	u8(b, DW_LNS_advance_pc), put(b, 0x03c0, 2); /* 0x1c0 */
	u8(b, 0), u8(b, 1), u8(b, DW_LNE_end_sequence);
	set_u32(b, 0, b->len - 4);
}

static void lines(struct forge *f)
{
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1};
	struct buf *b = &f->line;

	put(b, 0, 4), put(b, 4, 2), put(b, 0, 4);
	u8(b, 1), u8(b, 1), u8(b, 1), u8(b, 0), u8(b, 1), u8(b, 10);
	assert_int_equal(buf_append(b, operands, sizeof(operands)), 0);
	str(b, "lib"), u8(b, 0);
	str(b, "a.c"), u8(b, 1), u8(b, 0), u8(b, 0), u8(b, 0);
	set_u32(b, 6, b->len - 10);
	set_address(b);
	row(b, 0, 10);
	row(b, 0x20, 30);
	row(b, 0x20, (unsigned int)-29);
	end_sequence(b);
}

static struct forge forge_new(void)
{
	struct forge f = {.type = ET_EXEC, .version = 4};

	abbrevs(&f);
	lines(&f);
	return f;
}

static void forge_free(struct forge *f)
{
	elf_dwarf_close(f->dwarf);
	elf_image_close(f->image);
	buf_release(&f->info);
	buf_release(&f->abbrev);
	buf_release(&f->line);
	buf_release(&f->link);
	buf_release(&f->file);
}

/* The program of the comment above. */
static void program(struct forge *f)
{
	uint32_t inner, leaf;

	unit_begin(f, 1, 0, TEXT, 0x200);
	inner = declaration(f, "inner");
	leaf = declaration(f, "leaf");
	function(f, "outer", TEXT, 0x100);
	u8(&f->info, CODE_BLOCK), put(&f->info, 0, 8);
	call(f, inner, TEXT + 0x10, 0x30, 21);
	call(f, leaf, TEXT + 0x20, 0x10, 32);
	put(&f->info, 0, 5);
	unit_end(f);
}

static void add_section(struct forge *f, const char *name, struct buf *bytes, uint64_t flags)
{
	f->sections[f->n_sections++] = (struct section){name, bytes, flags};
}

static void write_sections(struct forge *f, Elf64_Ehdr *h)
{
	Elf64_Shdr headers[MAX_SECTIONS + 2] = {0};
	struct buf names = {0};
	size_t n = f->n_sections + 2;

	u8(&names, 0);
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct section *s = &f->sections[i];

		headers[i + 1] = (Elf64_Shdr){.sh_name = (Elf64_Word)names.len,
					      .sh_type = SHT_PROGBITS,
					      .sh_flags = s->flags,
					      .sh_offset = f->file.len,
					      .sh_size = s->bytes->len};
		str(&names, s->name);
		assert_int_equal(buf_append(&f->file, s->bytes->data, s->bytes->len), 0);
	}
	headers[n - 1] =
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = f->file.len, .sh_size = names.len};
	assert_int_equal(buf_append(&f->file, names.data, names.len), 0);
	h->e_shoff = f->file.len;
	h->e_shnum = (Elf64_Half)n;
	h->e_shstrndx = (Elf64_Half)(n - 1);
	assert_int_equal(buf_append(&f->file, headers, n * sizeof(*headers)), 0);
	buf_release(&names);
}

/* Lays everything out; what elf_dwarf_open says of it. */
static int forge_open(struct forge *f)
{
	Elf64_Phdr text = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = TEXT};
	Elf64_Ehdr h = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
		.e_type = f->type,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(h),
		.e_phentsize = sizeof(text),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	struct err err;

	text.p_filesz = text.p_memsz = TEXT_LEN;
	assert_int_equal(buf_append(&f->file, &h, sizeof(h)), 0);
	assert_int_equal(buf_append(&f->file, &text, sizeof(text)), 0);
	if (f->n_sections == 0) {
		add_section(f, ".debug_info", &f->info, 0);
		add_section(f, ".debug_abbrev", &f->abbrev, 0);
		add_section(f, ".debug_line", &f->line, 0);
	}
	write_sections(f, &h);
	memcpy(f->file.data, &h, sizeof(h));
	assert_int_equal(elf_image_open_bytes(buf_view(&f->file), &f->image, &err), 0);
	return elf_dwarf_open(f->image, MAX_BYTES, &f->dwarf, &err);
}

struct text {
	struct buf buf;
	int fail_at; /* the frame that is refused, from 1 */
	int n;
};

static int write_frame(void *context, const struct elf_dwarf_frame *frame)
{
	struct text *t = context;

	if (++t->n == t->fail_at)
		return -ECANCELED;
	return buf_printf(&t->buf, "%.*s %.*s:%d %d\n", (int)frame->name.len,
			  frame->name.len ? (const char *)frame->name.data : "",
			  (int)frame->file.len,
			  frame->file.len ? (const char *)frame->file.data : "", (int)frame->line,
			  (int)frame->start_line);
}

static void assert_frames(struct forge *f, uint64_t vaddr, const char *expected)
{
	struct text t = {0};
	int n = elf_dwarf_frames(f->dwarf, vaddr, write_frame, &t, NULL);

	assert_int_equal(n, t.n);
	assert_int_equal(buf_append_byte(&t.buf, 0), 0);
	assert_string_equal((char *)t.buf.data, expected);
	buf_release(&t.buf);
}

#define OUTER "outer /src/lib/a.c:11 10\n"
#define LEAF_IN_OUTER "leaf /src/lib/a.c:41 5\ninner /src/lib/a.c:32 5\nouter /src/lib/a.c:21 10\n"

static void inlined_calls_come_innermost_first(void **state)
{
	struct forge f = forge_new();

	(void)state;
	program(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_frames(&f, TEXT, OUTER);
	assert_frames(&f, TEXT + 0x10, "inner /src/lib/a.c:11 5\nouter /src/lib/a.c:21 10\n");
	assert_frames(&f, TEXT + 0x20, LEAF_IN_OUTER);
	assert_frames(&f, TEXT + 0x2f, LEAF_IN_OUTER);
	assert_frames(&f, TEXT + 0x30, "inner /src/lib/a.c:41 5\nouter /src/lib/a.c:21 10\n");
	assert_frames(&f, TEXT + 0x40, "outer /src/lib/a.c:12 10\n");
	forge_free(&f);
}

static void an_address_without_a_function_has_its_line(void **state)
{
	struct forge f = forge_new();

	(void)state;
	program(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_frames(&f, TEXT + 0x180, " /src/lib/a.c:12 0\n");
	assert_frames(&f, TEXT + 0x200, "");
	assert_frames(&f, TEXT - 1, "");
	assert_frames(&f, 0, "");
	assert_frames(&f, UINT64_MAX, "");
	forge_free(&f);
}

static void the_error_of_emit_ends_a_lookup(void **state)
{
	struct forge f = forge_new();

	(void)state;
	program(&f);
	assert_int_equal(forge_open(&f), 0);
	for (int i = 1; i <= 3; i++) {
		struct text t = {.fail_at = i};

		assert_int_equal(elf_dwarf_frames(f.dwarf, TEXT + 0x20, write_frame, &t, NULL),
				 -ECANCELED);
		assert_int_equal(t.n, i);
		buf_release(&t.buf);
	}
	assert_frames(&f, TEXT + 0x20, LEAF_IN_OUTER);
	forge_free(&f);
}

static void names_have_their_namespaces(void **state)
{
	struct forge f = forge_new();

	(void)state;
	unit_begin(&f, DW_LANG_C_plus_plus_14, 0, TEXT, 0x200);
	u8(&f.info, CODE_NAMESPACE), str(&f.info, "a");
	u8(&f.info, CODE_NAMESPACE), str(&f.info, "b");
	function(&f, "outer", TEXT, 0x100);
	put(&f.info, 0, 4);
	unit_end(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_frames(&f, TEXT, "a::b::outer /src/lib/a.c:11 10\n");
	forge_free(&f);
}

static void what_the_linker_threw_away_is_not_found(void **state)
{
	struct forge f = forge_new();

	(void)state;
	unit_begin(&f, 1, 0, 0, TEXT + 0x200);
	function(&f, "gone", 0, TEXT + 0x100);
	put(&f.info, 0, 2);
	unit_end(&f);
	program(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_frames(&f, TEXT, OUTER);
	forge_free(&f);
}

static void a_circle_of_origins_ends_without_a_name(void **state)
{
	struct forge f = forge_new();
	uint32_t first;

	(void)state;
	unit_begin(&f, 1, 0, TEXT, 0x200);
	first = here(&f);
	for (uint32_t i = 0; i < 2; i++) {
		u8(&f.info, CODE_CLONE);
		put(&f.info, i ? first : first + 17, 4);
		put(&f.info, TEXT + i * 0x10, 8);
		put(&f.info, 0x10, 4);
	}
	u8(&f.info, CODE_CLONE), put(&f.info, here(&f) - 1, 4);
	put(&f.info, TEXT + 0x20, 8), put(&f.info, 0x10, 4);
	u8(&f.info, 0);
	unit_end(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_frames(&f, TEXT, " /src/lib/a.c:11 0\n");
	assert_frames(&f, TEXT + 0x10, " /src/lib/a.c:11 0\n");
	assert_frames(&f, TEXT + 0x20, " /src/lib/a.c:41 0\n");
	forge_free(&f);
}

/* What stands before the damage is kept. */
static void assert_damage_is_survived(void (*damage)(struct forge *f))
{
	struct forge f = forge_new();

	unit_begin(&f, 1, 0, TEXT, 0x200);
	function(&f, "outer", TEXT, 0x100);
	damage(&f);
	function(&f, "behind", TEXT + 0x100, 0x100);
	put(&f.info, 0, 3);
	unit_end(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_frames(&f, TEXT, OUTER);
	assert_frames(&f, TEXT + 0x100, " /src/lib/a.c:12 0\n");
	forge_free(&f);
}

static void write_endless_number(struct forge *f)
{
	for (int i = 0; i < 100000; i++)
		u8(&f->info, 0xff);
}

static void write_unknown_code(struct forge *f)
{
	u8(&f->info, 99);
}

static void write_indirect_circle(struct forge *f)
{
	u8(&f->info, CODE_INDIRECT);
	for (int i = 0; i < 1000; i++)
		u8(&f->info, DW_FORM_indirect);
}

static void write_deep_nest(struct forge *f)
{
	for (int i = 0; i < 100000; i++)
		u8(&f->info, CODE_BLOCK), put(&f->info, 0, 8);
}

static void damaged_entries_hide_only_what_comes_behind(void **state)
{
	(void)state;
	assert_damage_is_survived(write_endless_number);
	assert_damage_is_survived(write_unknown_code);
	assert_damage_is_survived(write_indirect_circle);
	assert_damage_is_survived(write_deep_nest);
}

static void a_sibling_that_points_back_is_not_followed(void **state)
{
	struct forge f = forge_new();

	(void)state;
	unit_begin(&f, 1, 0, TEXT, 0x200);
	u8(&f.info, CODE_SKIPPED), put(&f.info, here(&f) - 1, 4), u8(&f.info, 0);
	u8(&f.info, CODE_SKIPPED), put(&f.info, UINT32_MAX, 4), u8(&f.info, 0);
	function(&f, "outer", TEXT, 0x100);
	put(&f.info, 0, 2);
	unit_end(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_frames(&f, TEXT, OUTER);
	forge_free(&f);
}

static void of_a_long_chain_both_ends_are_given(void **state)
{
	struct forge f = forge_new();
	struct text t = {0};
	uint32_t inner;

	(void)state;
	unit_begin(&f, 1, 0, TEXT, 0x200);
	inner = declaration(&f, "inner");
	function(&f, "outer", TEXT, 0x100);
	for (unsigned int i = 0; i < 200; i++)
		call(&f, inner, TEXT, 0x100, i);
	put(&f.info, 0, 1);
	unit_end(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_int_equal(elf_dwarf_frames(f.dwarf, TEXT, write_frame, &t, NULL),
			 ELF_DWARF_MAX_FRAMES);
	assert_int_equal(buf_append_byte(&t.buf, 0), 0);
	assert_int_equal(strncmp((char *)t.buf.data,
				 "inner /src/lib/a.c:11 5\n"
				 "inner /src/lib/a.c:199 5\n",
				 49),
			 0);
	assert_non_null(strstr((char *)t.buf.data, "\nouter "));
	buf_release(&t.buf);
	forge_free(&f);
}

static void too_many_abbreviations_are_refused(void **state)
{
	struct forge f = forge_new();

	(void)state;
	program(&f);
	f.abbrev.len--;
	for (unsigned int i = 0; i < 100000; i++)
		abbrev(&f, 0x7f, 1, false, NULL, 0);
	assert_int_equal(forge_open(&f), -E2BIG);
	assert_null(f.dwarf);
	forge_free(&f);
}

static void an_endless_abbreviation_is_refused(void **state)
{
	struct forge f = forge_new();

	(void)state;
	program(&f);
	f.abbrev.len = 0;
	u8(&f.abbrev, 1), u8(&f.abbrev, DW_TAG_compile_unit), u8(&f.abbrev, 1);
	for (unsigned int i = 0; i < 100000; i++)
		u8(&f.abbrev, 1);
	assert_int_equal(forge_open(&f), -EBADMSG);
	forge_free(&f);
}

/* A version 5 table of rows that take no bytes, 2^62 of them. */
static void a_table_of_countless_files_is_not_counted(void **state)
{
	struct forge f = forge_new();
	struct buf *b = &f.line;

	(void)state;
	f.line.len = 0;
	put(b, 0, 4), put(b, 5, 2), u8(b, 8), u8(b, 0), put(b, 0, 4);
	u8(b, 1), u8(b, 1), u8(b, 1), u8(b, 0), u8(b, 1), u8(b, 1);
	u8(b, 1), u8(b, DW_LNCT_path), u8(b, DW_FORM_flag_present);
	for (int i = 0; i < 8; i++)
		u8(b, 0xff);
	u8(b, 0x7f);
	set_u32(b, 8, b->len - 12);
	set_address(b);
	/* With this opcode base all opcodes are special: lines stay, addresses grow. */
	u8(b, 1), u8(b, 0xff), u8(b, 0), u8(b, 1), u8(b, DW_LNE_end_sequence);
	set_u32(b, 0, b->len - 4);
	program(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_frames(&f, TEXT, "outer :1 10\n");
	forge_free(&f);
}

static void what_is_not_read_is_said_at_open(void **state)
{
	struct forge f = forge_new();

	(void)state;
	f.version = 6;
	program(&f);
	assert_int_equal(forge_open(&f), -ENOTSUP);
	forge_free(&f);

	f = forge_new();
	f.type = ET_REL;
	program(&f);
	assert_int_equal(forge_open(&f), -ENOTSUP);
	forge_free(&f);

	f = forge_new();
	add_section(&f, ".debug_line", &f.line, 0);
	assert_int_equal(forge_open(&f), -ENOENT);
	forge_free(&f);
}

static void split_information_is_not_read(void **state)
{
	struct forge f = forge_new();

	(void)state;
	f.abbrev.len = 0;
	ABBREV(&f, CODE_UNIT, DW_TAG_compile_unit, false, {DW_AT_GNU_dwo_name, DW_FORM_string});
	u8(&f.abbrev, 0);
	unit_begin(&f, 1, 0, TEXT, 0x200);
	unit_end(&f);
	assert_int_equal(forge_open(&f), -ENOTSUP);
	forge_free(&f);
}

static void compress_section(struct buf *b, uint32_t type, uint64_t size)
{
	Elf64_Chdr header = {.ch_type = type, .ch_size = size, .ch_addralign = 1};
	struct buf out = {0};
	uLongf n = compressBound(b->len);

	assert_int_equal(buf_append(&out, &header, sizeof(header)), 0);
	assert_int_equal(buf_reserve(&out, MAX(n, ZSTD_compressBound(b->len))), 0);
	if (type == ELFCOMPRESS_ZLIB)
		assert_int_equal(compress(out.data + out.len, &n, b->data, b->len), Z_OK);
	else
		n = ZSTD_compress(out.data + out.len, ZSTD_compressBound(b->len), b->data, b->len,
				  1);
	out.len += n;
	buf_release(b);
	*b = out;
}

/* Many functions, so that the section has many pages. */
static void large_program(struct forge *f)
{
	char name[32];

	unit_begin(f, 1, 0, TEXT, TEXT_LEN);
	function(f, "outer", TEXT, 0x10);
	u8(&f->info, 0);
	for (unsigned int i = 1; i < 10000; i++) {
		(void)snprintf(name, sizeof(name), "function_%u", i);
		function(f, name, TEXT + i * 0x10, 0x10);
		u8(&f->info, 0);
	}
	u8(&f->info, 0);
	unit_end(f);
}

static void compressed_sections_are_read_as_others(void **state)
{
	(void)state;
	for (uint32_t type = 1; type <= 2; type++) {
		struct forge f = forge_new();

		large_program(&f);
		compress_section(&f.info, type, f.info.len);
		compress_section(&f.line, type, f.line.len);
		add_section(&f, ".debug_info", &f.info, SHF_COMPRESSED);
		add_section(&f, ".debug_abbrev", &f.abbrev, 0);
		add_section(&f, ".debug_line", &f.line, SHF_COMPRESSED);
		assert_int_equal(forge_open(&f), 0);
		assert_frames(&f, TEXT, OUTER);
		assert_frames(&f, TEXT + 0x2700 * 0x10, "function_9984 :0 10\n");
		assert_frames(&f, TEXT + 0x190, "function_25 /src/lib/a.c:12 10\n");
		assert_true(elf_dwarf_memory(f.dwarf) < MAX_BYTES);
		forge_free(&f);
	}
}

static void a_compressed_section_that_lies_about_its_size_is_damaged(void **state)
{
	(void)state;
	for (uint32_t type = 1; type <= 2; type++) {
		struct forge f = forge_new();

		program(&f);
		compress_section(&f.info, type, (uint64_t)1 << 35);
		add_section(&f, ".debug_info", &f.info, SHF_COMPRESSED);
		add_section(&f, ".debug_abbrev", &f.abbrev, 0);
		assert_int_equal(forge_open(&f), -EBADMSG);
		forge_free(&f);
	}
}

static void an_unknown_compression_is_refused(void **state)
{
	struct forge f = forge_new();

	(void)state;
	program(&f);
	compress_section(&f.info, 1, f.info.len);
	f.info.data[0] = 77;
	add_section(&f, ".debug_info", &f.info, SHF_COMPRESSED);
	add_section(&f, ".debug_abbrev", &f.abbrev, 0);
	assert_int_equal(forge_open(&f), -ENOTSUP);
	forge_free(&f);
}

/* More units than are kept; each is found, also when asked for again. */
static void units_are_dropped_within_the_limit(void **state)
{
	struct forge f = forge_new();
	char name[32], expected[64];

	(void)state;
	for (unsigned int i = 0; i < 5000; i++) {
		unit_begin(&f, 1, UINT32_MAX, TEXT + i * 0x20, 0x20);
		(void)snprintf(name, sizeof(name), "function_%u", i);
		for (int k = 0; k < 50; k++)
			(void)declaration(&f, "declared");
		function(&f, name, TEXT + i * 0x20, 0x20);
		put(&f.info, 0, 2);
		unit_end(&f);
	}
	assert_int_equal(forge_open(&f), 0);
	for (unsigned int i = 0; i < 10000; i += 3) {
		(void)snprintf(expected, sizeof(expected), "function_%u :0 10\n", i % 5000);
		assert_frames(&f, TEXT + i % 5000 * 0x20, expected);
		assert_true(elf_dwarf_memory(f.dwarf) < MAX_BYTES);
	}
	forge_free(&f);
}

static void the_link_to_the_alternate_file_is_read(void **state)
{
	struct forge f = forge_new();
	char path[64], id[64];
	struct err err;

	(void)state;
	program(&f);
	str(&f.link, "../common.dwz");
	put(&f.link, 0x0807060504030201, 8);
	add_section(&f, ".debug_info", &f.info, 0);
	add_section(&f, ".debug_abbrev", &f.abbrev, 0);
	add_section(&f, ".debug_line", &f.line, 0);
	add_section(&f, ".gnu_debugaltlink", &f.link, 0);
	assert_int_equal(forge_open(&f), 0);
	assert_int_equal(elf_dwarf_alternate_link(f.image, path, sizeof(path), id, sizeof(id)), 0);
	assert_string_equal(path, "../common.dwz");
	assert_string_equal(id, "0102030405060708");
	assert_int_equal(elf_dwarf_alternate_link(f.image, path, 13, id, sizeof(id)), -EBADMSG);
	assert_int_equal(elf_dwarf_alternate_link(f.image, path, sizeof(path), id, 16), -EBADMSG);
	/* It has no build id at all. */
	assert_int_equal(elf_dwarf_set_alternate(f.dwarf, f.image, &err), -EBADMSG);
	assert_frames(&f, TEXT, OUTER);
	forge_free(&f);

	f = forge_new();
	program(&f);
	assert_int_equal(forge_open(&f), 0);
	assert_int_equal(elf_dwarf_alternate_link(f.image, path, sizeof(path), id, sizeof(id)),
			 -ENOENT);
	forge_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_calls_come_innermost_first),
		cmocka_unit_test(an_address_without_a_function_has_its_line),
		cmocka_unit_test(the_error_of_emit_ends_a_lookup),
		cmocka_unit_test(names_have_their_namespaces),
		cmocka_unit_test(what_the_linker_threw_away_is_not_found),
		cmocka_unit_test(a_circle_of_origins_ends_without_a_name),
		cmocka_unit_test(damaged_entries_hide_only_what_comes_behind),
		cmocka_unit_test(a_sibling_that_points_back_is_not_followed),
		cmocka_unit_test(of_a_long_chain_both_ends_are_given),
		cmocka_unit_test(too_many_abbreviations_are_refused),
		cmocka_unit_test(an_endless_abbreviation_is_refused),
		cmocka_unit_test(a_table_of_countless_files_is_not_counted),
		cmocka_unit_test(what_is_not_read_is_said_at_open),
		cmocka_unit_test(split_information_is_not_read),
		cmocka_unit_test(compressed_sections_are_read_as_others),
		cmocka_unit_test(a_compressed_section_that_lies_about_its_size_is_damaged),
		cmocka_unit_test(an_unknown_compression_is_refused),
		cmocka_unit_test(units_are_dropped_within_the_limit),
		cmocka_unit_test(the_link_to_the_alternate_file_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
