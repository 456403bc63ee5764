/*
 * tests/unit/elf/test_unwind.c: unwind information in forged files, one rule at a time. Whole files
 * are compared with readelf by tests/oracle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/unwind/unwind.h"
#include "unwind_table.h"

/*
 *   0x000  ELF header, program headers      0x0a00  section headers
 *   0x200  .eh_frame_hdr                    0x0c00  their names
 *   0x240  entries
 *
 * The file is mapped at FILE_VADDR; the text is not in it.
 */
enum {
	FILE_BYTES = 0x1000,
	FILE_HDR = 0x200,
	FILE_ENTRIES = 0x240,
	FILE_SECTIONS = 0xa00,
	FILE_NAMES = 0xc00,
	FILE_VADDR = 0x10000,
	TEXT = 0x20000,
	TEXT_BYTES = 0x10000,
};

struct file {
	uint8_t bytes[FILE_BYTES];
	size_t at; /* of the next entry */
	size_t cie;
	bool is_debug;
};

static void put(struct file *f, const void *data, size_t len)
{
	assert_true(f->at + len <= FILE_SECTIONS);
	memcpy(f->bytes + f->at, data, len);
	f->at += len;
}

static void put32(struct file *f, uint32_t v)
{
	put(f, &v, sizeof(v));
}

/* An entry begins: its length is known at its end. */
static size_t begin(struct file *f, uint32_t id)
{
	size_t at = f->at;

	put32(f, 0);
	put32(f, id);
	return at;
}

static void end(struct file *f, size_t at)
{
	uint32_t len;

	while (f->at % 4)
		put(f, "", 1);
	len = (uint32_t)(f->at - at - 4);
	memcpy(f->bytes + at, &len, sizeof(len));
}

/* CFA = rsp + 8, return address at CFA - 8, unless the program says more. */
static void cie(struct file *f, const char *augmentation, const void *program, size_t len)
{
	static const uint8_t usual[] = {0x0c, 7, 8, 0x90, 1};

	f->cie = begin(f, f->is_debug ? UINT32_MAX : 0);
	put(f, "\1", 1);
	put(f, augmentation, strlen(augmentation) + 1);
	put(f, "\1\x78\x10", 3); /* alignments 1 and -8, column 16 */
	if (augmentation[0] == 'z')
		put(f, "\1\x1b", 2); /* addresses are relative to themselves, in four bytes */
	put(f, usual, sizeof(usual));
	put(f, program, len);
	end(f, f->cie);
}

static void fde(struct file *f, uint64_t start, uint32_t size, const void *program, size_t len)
{
	size_t at = begin(f, f->is_debug ? (uint32_t)(f->cie - FILE_ENTRIES)
					 : (uint32_t)(f->at + 4 - f->cie));

	if (f->is_debug) {
		uint64_t words[] = {start, size};

		put(f, words, sizeof(words));
	} else {
		put32(f, (uint32_t)(start - (FILE_VADDR + f->at)));
		put32(f, size);
		put(f, "", 1); /* no augmentation data */
	}
	put(f, program, len);
	end(f, at);
}

static struct file new_file(void)
{
	struct file f = {.at = FILE_ENTRIES};
	Elf64_Ehdr h = {
		.e_ident = ELFMAG,
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shoff = FILE_SECTIONS,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	Elf64_Phdr ph[] = {
		{.p_type = PT_LOAD, .p_vaddr = FILE_VADDR, .p_filesz = FILE_BYTES, .p_flags = PF_R},
		{.p_type = PT_LOAD, .p_vaddr = TEXT, .p_memsz = TEXT_BYTES, .p_flags = PF_X},
		{.p_type = PT_GNU_EH_FRAME,
		 .p_offset = FILE_HDR,
		 .p_vaddr = FILE_VADDR + FILE_HDR,
		 .p_filesz = 16},
	};
	uint32_t hdr[] = {0x3b031b01, FILE_ENTRIES - FILE_HDR - 4};

	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(f.bytes, &h, sizeof(h));
	memcpy(f.bytes + sizeof(h), ph, sizeof(ph));
	memcpy(f.bytes + FILE_HDR, hdr, sizeof(hdr));
	return f;
}

static void drop_eh_frame(struct file *f)
{
	/* PT_GNU_EH_FRAME */
	memset(f->bytes + sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr), 0, sizeof(Elf64_Phdr));
}

/* With .debug_frame alone. */
static struct file new_debug_file(void)
{
	struct file f = new_file();

	f.is_debug = true;
	drop_eh_frame(&f);
	return f;
}

static void add_sections(struct file *f)
{
	Elf64_Shdr sh[3] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_PROGBITS,
		 .sh_addr = FILE_VADDR + FILE_ENTRIES,
		 .sh_offset = FILE_ENTRIES,
		 .sh_size = f->at - FILE_ENTRIES},
		{.sh_type = SHT_STRTAB, .sh_offset = FILE_NAMES, .sh_size = 32},
	};

	memcpy(f->bytes + FILE_SECTIONS, sh, sizeof(sh));
	memcpy(f->bytes + FILE_NAMES + 1, f->is_debug ? ".debug_frame" : ".eh_frame\0\0\0", 13);
}

static int try_compile(struct file *f, struct elf_unwind_table *table)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct err err = {};
	int r;

	assert_int_equal(elf_image_open_bytes(view_of(f->bytes, sizeof(f->bytes)), &image, &err),
			 0);
	r = elf_unwind_compile(image, table, &err);
	assert_true((r < 0) == (err.text[0] != 0));
	return r;
}

static struct elf_unwind_table compile(struct file *f)
{
	struct elf_unwind_table table = {0};

	add_sections(f);
	assert_int_equal(try_compile(f, &table), 0);
	return table;
}

/* The rows of one function of 0x100 bytes with that program. */
static struct elf_unwind_table compile_one(const char *augmentation, const void *program,
					   size_t len)
{
	struct file f = new_file();

	cie(&f, augmentation, "", 0);
	fde(&f, TEXT, 0x100, program, len);
	return compile(&f);
}

#define COMPILE(...)                                                                               \
	compile_one("zR", (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void expect_at(const struct elf_unwind_table *t, uint64_t vaddr,
		      struct elf_unwind_rule expected, int line)
{
	struct elf_unwind_rule rule = unwind_table_lookup(t, vaddr);

	if (memcmp(&rule, &expected, sizeof(rule)) != 0)
		fail_msg("line %d, address 0x%lx: cfa %d%+d reg %d, fp %d%+d", line, vaddr,
			 rule.cfa, rule.cfa_off, rule.reg, rule.fp, rule.fp_off);
}

#define EXPECT(table, off, ...)                                                                    \
	expect_at(&(table), TEXT + (off), (struct elf_unwind_rule){__VA_ARGS__}, __LINE__)
#define SP(off) .cfa = ELF_UNWIND_SP, .cfa_off = (off)
#define FP(off) .cfa = ELF_UNWIND_FP, .cfa_off = (off)
#define SAVED(off) .fp = ELF_UNWIND_FP_SAVED, .fp_off = (off)

static void rows_follow_the_program_of_a_function(void **state)
{
	/* push rbp; mov rbp, rsp; ...; leave */
	struct elf_unwind_table t =
		COMPILE(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x90, 0x0c, 7, 8, 0xc6);

	(void)state;
	EXPECT(t, 0, SP(8));
	EXPECT(t, 1, SP(16), SAVED(-16));
	EXPECT(t, 3, SP(16), SAVED(-16));
	EXPECT(t, 4, FP(16), SAVED(-16));
	EXPECT(t, 0x93, FP(16), SAVED(-16));
	EXPECT(t, 0x94, SP(8));
	EXPECT(t, 0xff, SP(8));
	EXPECT(t, 0x100, .cfa = ELF_UNWIND_NONE);
	EXPECT(t, -1, .cfa = ELF_UNWIND_NONE);
	assert_int_equal(t.n_rows, 5);
	elf_unwind_table_release(&t);
}

static void advances_of_all_sizes_are_followed(void **state)
{
	struct elf_unwind_table t = COMPILE(0x41, 0x0e, 16, 0x02, 1, 0x0e, 24, 0x03, 1, 0, 0x0e, 32,
					    0x04, 1, 0, 0, 0, 0x0e, 40);

	(void)state;
	for (int i = 0; i < 5; i++)
		EXPECT(t, i, SP(8 + 8 * i));
	elf_unwind_table_release(&t);
}

static void states_are_remembered_and_restored(void **state)
{
	struct elf_unwind_table t = COMPILE(0x41, 0x0e, 16, 0x86, 2, 0x41, 0x0a, 0x0e, 8, 0xc6,
					    0x41, 0x0b, 0x41, 0x0e, 24);

	(void)state;
	EXPECT(t, 1, SP(16), SAVED(-16));
	EXPECT(t, 2, SP(8));
	EXPECT(t, 3, SP(16), SAVED(-16));
	EXPECT(t, 4, SP(24), SAVED(-16));
	elf_unwind_table_release(&t);
}

static void states_are_restored_in_reverse(void **state)
{
	struct elf_unwind_table t = COMPILE(0x0e, 16, 0x0a, 0x41, 0x0e, 24, 0x0a, 0x41, 0x0e, 32,
					    0x41, 0x0b, 0x41, 0x0b);

	(void)state;
	EXPECT(t, 1, SP(24));
	EXPECT(t, 2, SP(32));
	EXPECT(t, 3, SP(24));
	EXPECT(t, 4, SP(16));
	elf_unwind_table_release(&t);
}

static void more_states_than_anyone_nests_are_unsupported(void **state)
{
	uint8_t program[42];
	struct elf_unwind_table t;

	(void)state;
	memset(program, 0x0a, sizeof(program));
	program[0] = 0x41;
	t = compile_one("zR", program, sizeof(program));
	EXPECT(t, 0, SP(8));
	EXPECT(t, 1, .cfa = ELF_UNWIND_UNSUPPORTED);
	assert_int_equal(t.n_unsupported, 1);
	elf_unwind_table_release(&t);
}

static void a_state_that_was_not_remembered_is_unsupported(void **state)
{
	struct elf_unwind_table t = COMPILE(0x0b);

	(void)state;
	EXPECT(t, 0, .cfa = ELF_UNWIND_UNSUPPORTED);
	elf_unwind_table_release(&t);
}

static void registers_other_than_the_stack_pointer_are_named(void **state)
{
	struct elf_unwind_table t = COMPILE(0x0c, 10, 0, 0x41, 0x0c, 64, 0);

	(void)state;
	EXPECT(t, 0, .cfa = ELF_UNWIND_REG, .reg = 10);
	EXPECT(t, 1, .cfa = ELF_UNWIND_UNSUPPORTED);
	elf_unwind_table_release(&t);
}

static void realigned_stacks_are_followed(void **state)
{
	/* lea r10, [rsp + 8]; and rsp, -32; push [r10 - 8]; push rbp; mov rbp, rsp; push r10 */
	struct elf_unwind_table t = COMPILE(0x45, 0x0c, 10, 0, 0x49, 0x10, 6, 2, 0x76, 0, 0x44,
					    0x0f, 3, 0x76, 0x78, 0x06);

	(void)state;
	EXPECT(t, 5, .cfa = ELF_UNWIND_REG, .reg = 10);
	EXPECT(t, 14, .cfa = ELF_UNWIND_REG, .reg = 10, .fp = ELF_UNWIND_FP_AT_FP);
	EXPECT(t, 18, .cfa = ELF_UNWIND_FP_DEREF, .cfa_off = 0xfff8, .fp = ELF_UNWIND_FP_AT_FP);
	elf_unwind_table_release(&t);
}

static void a_stack_pointer_that_was_stored_is_fetched(void **state)
{
	/* OpenSSL: rsp + 72 holds the old stack pointer */
	struct elf_unwind_table t = COMPILE(0x0f, 6, 0x77, 0xc8, 0, 0x06, 0x23, 8);

	(void)state;
	EXPECT(t, 0, .cfa = ELF_UNWIND_SP_DEREF, .cfa_off = 8 << 16 | 72);
	elf_unwind_table_release(&t);
}

static void expressions_that_are_a_register_and_a_number_are_plain(void **state)
{
	struct elf_unwind_table t = COMPILE(0x0f, 3, 0x77, 0x80, 1);

	(void)state;
	EXPECT(t, 0, SP(128));
	elf_unwind_table_release(&t);
}

static void other_expressions_are_unsupported(void **state)
{
	/* deref of another register; a trailing operation; numbers beyond 16 bits; none at all */
	static const uint8_t programs[][9] = {
		{0x0f, 3, 0x7a, 0, 0x06},
		{0x0f, 4, 0x77, 0, 0x06, 0x1c},
		{0x0f, 5, 0x77, 0x80, 0x80, 4, 0x06},
		{0x0f, 7, 0x77, 0, 0x06, 0x23, 0x80, 0x80, 2},
		{0x0f, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_unwind_table t = compile_one("zR", programs[i], sizeof(programs[i]));

		EXPECT(t, 0, .cfa = ELF_UNWIND_UNSUPPORTED);
		assert_int_equal(t.n_unsupported, 1);
		elf_unwind_table_release(&t);
	}
}

static void jump_tables_are_known(void **state)
{
	struct elf_unwind_table t =
		COMPILE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22);

	(void)state;
	EXPECT(t, 0, .cfa = ELF_UNWIND_PLT, .cfa_off = 10);
	elf_unwind_table_release(&t);
}

static void signal_frames_are_known(void **state)
{
	struct elf_unwind_table t = compile_one("zRS", "\x41\x0e\x10", 3);

	(void)state;
	EXPECT(t, 0, .cfa = ELF_UNWIND_SIGNAL);
	EXPECT(t, 0xff, .cfa = ELF_UNWIND_SIGNAL);
	assert_int_equal(t.n_rows, 2);
	elf_unwind_table_release(&t);
}

static void an_undefined_return_address_is_the_end(void **state)
{
	struct elf_unwind_table t = COMPILE(0x07, 16);

	(void)state;
	EXPECT(t, 0, .cfa = ELF_UNWIND_END);
	assert_int_equal(t.n_unsupported, 0);
	elf_unwind_table_release(&t);
}

static void a_return_address_that_lies_elsewhere_is_unsupported(void **state)
{
	/* at CFA - 16; in a register; at an expression; as a value */
	static const uint8_t programs[][6] = {
		{0x90, 2}, {0x09, 16, 1}, {0x10, 16, 2, 0x77, 0}, {0x16, 16, 2, 0x77, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_unwind_table t = compile_one("zR", programs[i], sizeof(programs[i]));

		EXPECT(t, 0, .cfa = ELF_UNWIND_UNSUPPORTED);
		elf_unwind_table_release(&t);
	}
}

static void a_frame_pointer_that_cannot_be_had_is_lost(void **state)
{
	/* undefined; in a register; a value; an expression of rsp; farther than 16 bits */
	static const uint8_t programs[][6] = {{0x07, 6},
					      {0x09, 6, 3},
					      {0x14, 6, 2},
					      {0x10, 6, 2, 0x77, 0},
					      {0x05, 6, 0x80, 0x80, 1}};
	struct elf_unwind_table same = COMPILE(0x86, 2, 0x41, 0x08, 6);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_unwind_table t = compile_one("zR", programs[i], sizeof(programs[i]));

		EXPECT(t, 0, SP(8), .fp = ELF_UNWIND_FP_LOST);
		elf_unwind_table_release(&t);
	}
	EXPECT(same, 0, SP(8), SAVED(-16));
	EXPECT(same, 1, SP(8));
	elf_unwind_table_release(&same);
}

static void signed_offsets_are_in_units_of_the_cie(void **state)
{
	struct elf_unwind_table t =
		COMPILE(0x12, 7, 0x7e, 0x41, 0x13, 0x7d, 0x11, 6, 3, 0x41, 0x2f, 6, 4, 0x2e, 9);

	(void)state;
	EXPECT(t, 0, SP(16));
	EXPECT(t, 1, SP(24), SAVED(-24));
	EXPECT(t, 2, SP(24), SAVED(32));
	elf_unwind_table_release(&t);
}

static void an_unknown_instruction_leaves_the_rest_unsupported(void **state)
{
	struct elf_unwind_table t = COMPILE(0x44, 0x0e, 16, 0x44, 0x3d, 0x44, 0x0e, 8);

	(void)state;
	EXPECT(t, 4, SP(16));
	EXPECT(t, 8, .cfa = ELF_UNWIND_UNSUPPORTED);
	EXPECT(t, 0xff, .cfa = ELF_UNWIND_UNSUPPORTED);
	EXPECT(t, 0x100, .cfa = ELF_UNWIND_NONE);
	assert_int_equal(t.n_unsupported, 1);
	elf_unwind_table_release(&t);
}

static void an_operand_that_is_cut_off_leaves_the_rest_unsupported(void **state)
{
	struct elf_unwind_table t = COMPILE(0x41, 0x0f, 0x70, 0x77);

	(void)state;
	EXPECT(t, 0, SP(8));
	EXPECT(t, 1, .cfa = ELF_UNWIND_UNSUPPORTED);
	elf_unwind_table_release(&t);
}

static void nothing_is_said_beyond_the_end_of_a_function(void **state)
{
	struct elf_unwind_table t = COMPILE(0x0e, 16, 0x03, 0xff, 0, 0x0e, 24, 0x41, 0x0e, 32);

	(void)state;
	EXPECT(t, 0xfe, SP(16));
	EXPECT(t, 0xff, SP(24));
	EXPECT(t, 0x100, .cfa = ELF_UNWIND_NONE);
	assert_int_equal(t.n_rows, 3);
	elf_unwind_table_release(&t);
}

static void functions_may_come_in_any_order(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t;

	(void)state;
	cie(&f, "zR", "", 0);
	fde(&f, TEXT + 0x200, 0x10, "\x0e\x18", 2);
	fde(&f, TEXT, 0x10, "\x0e\x10", 2);
	fde(&f, TEXT + 0x10, 0x10, "\x0e\x10", 2);
	t = compile(&f);
	EXPECT(t, 0, SP(16));
	EXPECT(t, 0x1f, SP(16));
	EXPECT(t, 0x20, .cfa = ELF_UNWIND_NONE);
	EXPECT(t, 0x200, SP(24));
	/* Rows with equal rules are joined, functions are not. */
	assert_int_equal(t.n_rows, 4);
	assert_int_equal(t.n_starts, 3);
	assert_int_equal(unwind_table_start(&t, TEXT + 0x1f), TEXT + 0x10);
	assert_int_equal(unwind_table_start(&t, TEXT + 0x300), TEXT + 0x200);
	assert_int_equal(unwind_table_start(&t, TEXT - 1), 0);
	elf_unwind_table_release(&t);
}

static void overlapping_functions_each_have_their_start(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t;

	(void)state;
	cie(&f, "zR", "", 0);
	fde(&f, TEXT, 0x100, "\x42\x0e\x10", 3);
	fde(&f, TEXT + 1, 0x10, "\x0e\x18", 2);
	fde(&f, TEXT + 1, 0x20, "\x0e\x18", 2);
	t = compile(&f);
	EXPECT(t, 0, SP(8));
	EXPECT(t, 1, SP(24));
	EXPECT(t, 2, SP(24));
	EXPECT(t, 0x21, .cfa = ELF_UNWIND_NONE);
	assert_int_equal(t.n_starts, 2);
	assert_int_equal(t.n_damaged, 1);
	elf_unwind_table_release(&t);
}

static void functions_outside_of_the_text_are_left_out(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t;

	(void)state;
	cie(&f, "zR", "", 0);
	fde(&f, 0, 0x10, "", 0);
	fde(&f, TEXT + TEXT_BYTES - 16, 17, "", 0);
	fde(&f, TEXT + TEXT_BYTES - 8, 8, "", 0);
	fde(&f, TEXT, 0, "", 0);
	t = compile(&f);
	assert_int_equal(t.n_starts, 1);
	assert_int_equal(t.n_damaged, 2);
	EXPECT(t, TEXT_BYTES - 1, SP(8));
	elf_unwind_table_release(&t);
}

static void functions_of_a_strange_cie_are_left_out(void **state)
{
	static const char *const augmentations[] = {"eh", "R", "zRQ"};
	struct elf_unwind_table t;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(augmentations); i++) {
		/* A letter that is not known says nothing of the rules. */
		bool usable = augmentations[i][0] == 'z';

		t = compile_one(augmentations[i], "", 0);
		assert_int_equal(t.n_starts, usable);
		assert_int_equal(t.n_damaged, !usable);
		elf_unwind_table_release(&t);
	}
}

static void an_entry_that_runs_off_the_end_ends_all(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t;

	(void)state;
	cie(&f, "zR", "", 0);
	fde(&f, TEXT, 0x10, "", 0);
	put32(&f, 0x1000);
	t = compile(&f);
	assert_int_equal(t.n_starts, 1);
	assert_int_equal(t.n_damaged, 1);
	elf_unwind_table_release(&t);
}

static void a_file_without_section_headers_is_read_by_its_segment(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t = {0};

	(void)state;
	cie(&f, "zR", "", 0);
	fde(&f, TEXT, 0x10, "\x0e\x10", 2);
	put32(&f, 0);
	/* Not part of it any more. */
	fde(&f, TEXT + 0x10, 0x10, "", 0);
	memset(f.bytes + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	assert_int_equal(try_compile(&f, &t), 0);
	assert_int_equal(t.n_starts, 1);
	EXPECT(t, 0, SP(16));
	elf_unwind_table_release(&t);
}

static void a_section_goes_on_after_an_end_within_it(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t;

	(void)state;
	cie(&f, "zR", "", 0);
	fde(&f, TEXT, 0x10, "", 0);
	put32(&f, 0);
	fde(&f, TEXT + 0x10, 0x10, "", 0);
	t = compile(&f);
	assert_int_equal(t.n_starts, 2);
	elf_unwind_table_release(&t);
}

static void debug_frame_is_read_where_there_is_no_eh_frame(void **state)
{
	struct file f = new_debug_file();
	struct elf_unwind_table t;

	(void)state;
	cie(&f, "", "", 0);
	fde(&f, TEXT, 0x100, "\x41\x0e\x10", 3);
	t = compile(&f);
	EXPECT(t, 0, SP(8));
	EXPECT(t, 1, SP(16));
	assert_int_equal(t.n_starts, 1);
	elf_unwind_table_release(&t);
}

static void locations_may_be_set(void **state)
{
	struct file f = new_debug_file();
	struct elf_unwind_table t;

	(void)state;
	cie(&f, "", "", 0);
	/* Forwards, then back, which makes no sense. */
	fde(&f, TEXT, 0x100, "\x01\x08\x00\x02\0\0\0\0\0\x0e\x10\x01\x04\x00\x02\0\0\0\0\0", 20);
	t = compile(&f);
	EXPECT(t, 7, SP(8));
	EXPECT(t, 8, .cfa = ELF_UNWIND_UNSUPPORTED);
	elf_unwind_table_release(&t);
}

static void a_file_without_unwind_information_says_so(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t = {0};

	(void)state;
	drop_eh_frame(&f);
	assert_int_equal(try_compile(&f, &t), -ENOENT);
	assert_null(t.rows);
}

static void another_machine_is_refused(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t = {0};
	uint16_t machine = EM_AARCH64;

	(void)state;
	cie(&f, "zR", "", 0);
	memcpy(f.bytes + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
	assert_int_equal(try_compile(&f, &t), -ENOTSUP);
}

static void a_section_that_is_larger_than_the_limit_is_refused(void **state)
{
	struct file f = new_file();
	struct elf_unwind_table t = {0};
	uint64_t size = 1ULL << 40;

	(void)state;
	add_sections(&f);
	memcpy(f.bytes + FILE_SECTIONS + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), &size,
	       sizeof(size));
	assert_int_equal(try_compile(&f, &t), -E2BIG);
}

/* A file whose search table has n rows, which all lead to the entry. Free the result. */
static uint8_t *new_searched_file(struct file *f, size_t entry, size_t n, size_t *ret_len)
{
	size_t len = FILE_BYTES + 12 + 8 * n;
	uint8_t *bytes = calloc(1, len);
	const Elf64_Phdr table = {.p_type = PT_GNU_EH_FRAME,
				  .p_offset = FILE_BYTES,
				  .p_vaddr = FILE_VADDR + FILE_BYTES,
				  .p_filesz = 12 + 8 * n};
	const uint32_t head[] = {0x3b031b01, (uint32_t)(FILE_ENTRIES - FILE_BYTES - 4),
				 (uint32_t)n};
	const uint64_t section_bytes = len - FILE_ENTRIES;

	assert_non_null(bytes);
	add_sections(f);
	memcpy(bytes, f->bytes, FILE_BYTES);
	memcpy(bytes + sizeof(Elf64_Ehdr) + 2 * sizeof(table), &table, sizeof(table));
	memcpy(bytes + FILE_SECTIONS + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size),
	       &section_bytes, sizeof(section_bytes));
	memcpy(bytes + FILE_BYTES, head, sizeof(head));
	for (size_t i = 0; i < n; i++) {
		const int32_t row[] = {(int32_t)(TEXT + i * TEXT_BYTES / n) - FILE_VADDR -
					       FILE_BYTES,
				       (int32_t)entry - FILE_BYTES};

		memcpy(bytes + FILE_BYTES + sizeof(head) + i * sizeof(row), row, sizeof(row));
	}
	*ret_len = len;
	return bytes;
}

struct sunk {
	size_t rows, pauses;
};

static int sink_rows(void *context, const struct elf_unwind_row *rows, size_t n)
{
	struct sunk *sunk = context;

	(void)rows;
	sunk->rows += n;
	sunk->pauses += n == 0;
	return 0;
}

static int stream_text(const uint8_t *bytes, size_t len, struct sunk *ret_sunk)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	const struct elf_unwind_range range = {.from = TEXT, .to = TEXT + TEXT_BYTES};
	const struct elf_unwind_sink sink = {.rows = sink_rows, .context = ret_sunk};

	*ret_sunk = (struct sunk){0};
	assert_int_equal(elf_image_open_bytes(view_of(bytes, len), &image, NULL), 0);
	return elf_unwind_stream(image, &range, &sink, NULL);
}

static void a_search_table_without_an_end_is_refused(void **state)
{
	struct file f = new_file();
	struct sunk sunk;
	size_t len;
	/* Outside of the section: each row is skipped. */
	_cleanup_free_ uint8_t *bytes = new_searched_file(&f, 0, (size_t)1 << 21, &len);

	(void)state;
	assert_int_equal(stream_text(bytes, len, &sunk), -E2BIG);
	assert_int_equal(sunk.rows, 0);
}

static void a_search_table_to_the_same_large_entry_is_refused(void **state)
{
	struct file f = new_file();
	_cleanup_free_ uint8_t *bytes = NULL;
	struct sunk sunk;
	uint32_t len = 500000;
	size_t at, total;

	(void)state;
	cie(&f, "zR", "", 0);
	at = f.at;
	fde(&f, TEXT, 0x100, "", 0);
	memcpy(f.bytes + at, &len, sizeof(len));
	bytes = new_searched_file(&f, at, TEXT_BYTES, &total);
	assert_int_equal(stream_text(bytes, total, &sunk), -E2BIG);
}

static void damaged_functions_leave_time_for_others(void **state)
{
	struct file f = new_file();
	_cleanup_free_ uint8_t *bytes = NULL;
	struct sunk sunk;
	size_t at, len;

	(void)state;
	cie(&f, "zR", "", 0);
	at = f.at;
	fde(&f, TEXT, 0x100, "", 0);
	bytes = new_searched_file(&f, at, TEXT_BYTES, &len);
	assert_int_equal(stream_text(bytes, len, &sunk), 0);
	assert_in_range(sunk.pauses, TEXT_BYTES / 4096, TEXT_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_follow_the_program_of_a_function),
		cmocka_unit_test(advances_of_all_sizes_are_followed),
		cmocka_unit_test(states_are_remembered_and_restored),
		cmocka_unit_test(states_are_restored_in_reverse),
		cmocka_unit_test(more_states_than_anyone_nests_are_unsupported),
		cmocka_unit_test(a_state_that_was_not_remembered_is_unsupported),
		cmocka_unit_test(registers_other_than_the_stack_pointer_are_named),
		cmocka_unit_test(realigned_stacks_are_followed),
		cmocka_unit_test(a_stack_pointer_that_was_stored_is_fetched),
		cmocka_unit_test(expressions_that_are_a_register_and_a_number_are_plain),
		cmocka_unit_test(other_expressions_are_unsupported),
		cmocka_unit_test(jump_tables_are_known),
		cmocka_unit_test(signal_frames_are_known),
		cmocka_unit_test(an_undefined_return_address_is_the_end),
		cmocka_unit_test(a_return_address_that_lies_elsewhere_is_unsupported),
		cmocka_unit_test(a_frame_pointer_that_cannot_be_had_is_lost),
		cmocka_unit_test(signed_offsets_are_in_units_of_the_cie),
		cmocka_unit_test(an_unknown_instruction_leaves_the_rest_unsupported),
		cmocka_unit_test(an_operand_that_is_cut_off_leaves_the_rest_unsupported),
		cmocka_unit_test(nothing_is_said_beyond_the_end_of_a_function),
		cmocka_unit_test(functions_may_come_in_any_order),
		cmocka_unit_test(overlapping_functions_each_have_their_start),
		cmocka_unit_test(functions_outside_of_the_text_are_left_out),
		cmocka_unit_test(functions_of_a_strange_cie_are_left_out),
		cmocka_unit_test(an_entry_that_runs_off_the_end_ends_all),
		cmocka_unit_test(a_file_without_section_headers_is_read_by_its_segment),
		cmocka_unit_test(a_section_goes_on_after_an_end_within_it),
		cmocka_unit_test(debug_frame_is_read_where_there_is_no_eh_frame),
		cmocka_unit_test(locations_may_be_set),
		cmocka_unit_test(a_file_without_unwind_information_says_so),
		cmocka_unit_test(another_machine_is_refused),
		cmocka_unit_test(a_section_that_is_larger_than_the_limit_is_refused),
		cmocka_unit_test(a_search_table_without_an_end_is_refused),
		cmocka_unit_test(a_search_table_to_the_same_large_entry_is_refused),
		cmocka_unit_test(damaged_functions_leave_time_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
