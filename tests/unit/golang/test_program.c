/*
 * tests/unit/golang/test_program.c: a made-up Go program as a file. Real ones are compared with
 * readelf and with runtime/pprof by tests/oracle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "golang/binary/program.h"
#include "test_program.h"
#include "unwind_table.h"

/* Of the functions in test_golang_program.h: */
enum {
	FIRST = 0,
	STKBUCKET = 1,
	SCHEDINIT = 4,
	MALLOCGC = 5,
	MAIN = 6,
	GOEXIT = 7,

	TOP_FRAME = 1,
	SP_WRITE = 2,
	ASM = 4,

	PCSP = 4,	/* offsets in the table of pc-values */
	PCSP_BAD = 20,	/* cut off by the end of the table */
	RECORD = 0x200, /* a longer record, in the table of functions */
	TREE = 0xb00,	/* of inlined calls */
	DYNAMIC = 0x3000,
	RELOCATIONS = 0x3100,
};

static size_t record_of(size_t function)
{
	return PROGRAM_FUNCTIONS + 8 * (PROGRAM_N_FUNCTIONS + 1) + 48 * function;
}

static void set_flags(struct program *p, size_t function, uint8_t flags)
{
	p->bytes[record_of(function) + 41] = flags;
}

static void set_pcsp(struct program *p, size_t function, uint32_t table)
{
	program_u32(p, record_of(function) + 16, table);
}

static void set_code(struct program *p, size_t function, const void *code, size_t len)
{
	memcpy(p->bytes + PROGRAM_CODE + function * PROGRAM_CODE_BYTES, code, len);
}

static void build(struct program *p)
{
	/* 0 for 4 bytes, 8 for 8, 32 for 48, 0 again for 4; then one that lacks its end. */
	static const uint8_t pcsp[] = {2, 4, 16, 8, 48, 48, 63, 4, 0};
	static const uint8_t bad[] = {2, 4, 16, 8, 48};

	program_build(p);
	program_u64(p, sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_vaddr), PROGRAM_BASE);
	memcpy(p->bytes + PROGRAM_PCTAB + PCSP, pcsp, sizeof(pcsp));
	memcpy(p->bytes + PROGRAM_PCTAB + PCSP_BAD, bad, sizeof(bad));
	program_slice(p, 80, PROGRAM_PCTAB, PCSP_BAD + sizeof(bad));
	for (size_t i = 0; i < PROGRAM_N_FUNCTIONS; i++)
		set_pcsp(p, i, PCSP);
	set_flags(p, GOEXIT, TOP_FRAME);
}

static int try_open(const struct program *p, struct golang_program **ret_program)
{
	_cleanup_close_ int fd = memfd_create("program", MFD_CLOEXEC);
	struct err err = {};
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, p->bytes, sizeof(p->bytes)), sizeof(p->bytes));
	r = golang_program_open(fd, ret_program, &err);
	assert_true((r < 0) == (err.text[0] != 0));
	return r;
}

static struct golang_program *open_program(const struct program *p)
{
	struct golang_program *program = NULL;

	assert_int_equal(try_open(p, &program), 0);
	return program;
}

static struct elf_unwind_table unwind(const struct program *p)
{
	_cleanup_(golang_program_closep) struct golang_program *program = open_program(p);
	struct elf_unwind_table table = {0};
	struct err err = {};

	assert_int_equal(golang_program_unwind(program, &table, &err), 0);
	assert_int_equal(table.n_starts + table.n_damaged, PROGRAM_N_FUNCTIONS);
	return table;
}

static void expect_at(const struct elf_unwind_table *t, uint64_t vaddr,
		      struct elf_unwind_rule expected, int line)
{
	struct elf_unwind_rule rule = unwind_table_lookup(t, vaddr);

	if (memcmp(&rule, &expected, sizeof(rule)) != 0)
		fail_msg("line %d, address 0x%lx: cfa %d%+d, fp %d%+d", line, vaddr, rule.cfa,
			 rule.cfa_off, rule.fp, rule.fp_off);
}

#define EXPECT(table, function, off, ...)                                                          \
	expect_at(&(table), program_address_of(function, off),                                     \
		  (struct elf_unwind_rule){__VA_ARGS__}, __LINE__)
#define SP(off) .cfa = ELF_UNWIND_SP, .cfa_off = (off)
#define FRAMED .cfa = ELF_UNWIND_FP, .cfa_off = 16
#define SAVED .fp = ELF_UNWIND_FP_SAVED, .fp_off = -16

static void rows_follow_the_stack_pointer(void **state)
{
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	t = unwind(&p);
	for (size_t i = FIRST; i < GOEXIT; i++) {
		EXPECT(t, i, 0, SP(8));
		EXPECT(t, i, 3, SP(8));
		EXPECT(t, i, 4, SP(16), SAVED);
		EXPECT(t, i, 12, SP(40), SAVED);
		EXPECT(t, i, 59, SP(40), SAVED);
		EXPECT(t, i, 60, SP(8));
		assert_int_equal(unwind_table_start(&t, program_address_of(i, 9)),
				 program_address_of(i, 0));
	}
	EXPECT(t, FIRST, -1, .cfa = ELF_UNWIND_NONE);
	EXPECT(t, GOEXIT, PROGRAM_CODE_BYTES, .cfa = ELF_UNWIND_NONE);
	elf_unwind_table_release(&t);
}

static void the_outermost_function_is_the_end(void **state)
{
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	t = unwind(&p);
	EXPECT(t, GOEXIT, 0, .cfa = ELF_UNWIND_END);
	EXPECT(t, GOEXIT, PROGRAM_CODE_BYTES - 1, .cfa = ELF_UNWIND_END);
	elf_unwind_table_release(&t);
}

static void assembly_saves_the_frame_pointer_only_if_its_code_does(void **state)
{
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	set_flags(&p, FIRST, ASM);
	set_flags(&p, STKBUCKET, ASM);
	set_code(&p, STKBUCKET, "\x48\x8d\x6c\x24\x18", 5);
	t = unwind(&p);
	EXPECT(t, FIRST, 12, SP(40));
	EXPECT(t, STKBUCKET, 12, SP(40), SAVED);
	elf_unwind_table_release(&t);
}

static void a_switch_of_stacks_is_crossed_by_the_frame_pointer(void **state)
{
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	set_flags(&p, FIRST, ASM | SP_WRITE);
	set_flags(&p, STKBUCKET, ASM | SP_WRITE);
	set_code(&p, STKBUCKET, "\x90\x90\x90\x55\x48\x89\xe5", 7);
	t = unwind(&p);
	EXPECT(t, FIRST, 0, .cfa = ELF_UNWIND_CHAIN);
	EXPECT(t, FIRST, 20, .cfa = ELF_UNWIND_CHAIN);
	EXPECT(t, STKBUCKET, 3, SP(8));
	EXPECT(t, STKBUCKET, 4, SP(16), SAVED);
	EXPECT(t, STKBUCKET, 6, SP(16), SAVED);
	EXPECT(t, STKBUCKET, 7, FRAMED, SAVED);
	EXPECT(t, STKBUCKET, 59, FRAMED, SAVED);
	EXPECT(t, STKBUCKET, 60, SP(8));
	elf_unwind_table_release(&t);
}

/* "runtime.schedinit" gets another name of that length. */
static void rename_schedinit(struct program *p)
{
	uint32_t name;

	memcpy(&name, p->bytes + record_of(SCHEDINIT) + 4, sizeof(name));
	memcpy(p->bytes + PROGRAM_NAMES + name, "runtime.sigreturn", 17);
}

static void a_return_from_a_signal_is_known_one_byte_before(void **state)
{
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	rename_schedinit(&p);
	t = unwind(&p);
	EXPECT(t, SCHEDINIT, -2, SP(8));
	EXPECT(t, SCHEDINIT, -1, .cfa = ELF_UNWIND_SIGNAL);
	EXPECT(t, SCHEDINIT, 20, .cfa = ELF_UNWIND_SIGNAL);
	EXPECT(t, MALLOCGC, 0, SP(8));
	elf_unwind_table_release(&t);
}

static void a_function_without_a_table_has_frame_pointers(void **state)
{
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	set_pcsp(&p, MAIN, 0);
	t = unwind(&p);
	EXPECT(t, MAIN, 0, .cfa = ELF_UNWIND_CHAIN);
	elf_unwind_table_release(&t);
}

static void a_damaged_table_leaves_the_rest_unsupported(void **state)
{
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	set_pcsp(&p, STKBUCKET, PCSP_BAD);
	set_pcsp(&p, MAIN, UINT32_MAX);
	t = unwind(&p);
	EXPECT(t, STKBUCKET, 4, SP(16), SAVED);
	EXPECT(t, STKBUCKET, 12, .cfa = ELF_UNWIND_UNSUPPORTED);
	EXPECT(t, STKBUCKET + 1, 0, SP(8));
	EXPECT(t, MAIN, 0, .cfa = ELF_UNWIND_UNSUPPORTED);
	assert_int_equal(t.n_unsupported, 2);
	elf_unwind_table_release(&t);
}

static void a_damaged_record_is_left_out(void **state)
{
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	program_u32(&p, PROGRAM_FUNCTIONS + 8 * MAIN + 4, 0x10000000);
	t = unwind(&p);
	EXPECT(t, MAIN, 20, .cfa = ELF_UNWIND_NONE);
	EXPECT(t, GOEXIT, 0, .cfa = ELF_UNWIND_END);
	assert_int_equal(t.n_damaged, 1);
	elf_unwind_table_release(&t);
}

static void functions_that_do_not_ascend_are_refused(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	struct elf_unwind_table t = {0};
	struct err err = {};
	static struct program p;

	(void)state;
	build(&p);
	program_u32(&p, PROGRAM_FUNCTIONS + 8 * MAIN, 0);
	program = open_program(&p);
	assert_int_equal(golang_program_unwind(program, &t, &err), -EBADMSG);
	assert_null(t.rows);
	assert_true(err.text[0]);
}

static int append_frame(void *context, const struct golang_program_frame *f)
{
	char *text = context;
	size_t len = strlen(text);

	(void)snprintf(text + len, 512 - len, "%.*s %.*s:%ld %ld\n", (int)f->name.len,
		       (const char *)f->name.data, (int)f->file.len, (const char *)f->file.data,
		       (long)f->line, (long)f->start_line);
	return 0;
}

static void expect_frames(struct golang_program *program, uint64_t vaddr, const char *expected)
{
	char text[512] = "";
	int n = 0;

	for (const char *c = expected; *c; c++)
		n += *c == '\n';
	assert_int_equal(golang_program_frames(program, vaddr, append_frame, text, NULL), n);
	assert_string_equal(text, expected);
}

static void addresses_have_names_files_and_lines(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	static struct program p;

	(void)state;
	build(&p);
	program_u32(&p, record_of(MAIN) + 36, 17);
	program = open_program(&p);
	expect_frames(program, program_address_of(MAIN, 5), "main.main main.go:0 17\n");
	expect_frames(program, program_address_of(GOEXIT, 0), "runtime.goexit main.go:0 0\n");
	expect_frames(program, program_address_of(GOEXIT, PROGRAM_CODE_BYTES), "");
	expect_frames(program, 0, "");
}

/* main.main with two calls inlined into each other: stkbucket within mallocgc. */
static void inline_calls(struct program *p, uint8_t func_id)
{
	size_t at = PROGRAM_FUNCTIONS + RECORD;
	uint32_t stkbucket, mallocgc;

	memcpy(p->bytes + at, p->bytes + record_of(MAIN), 44);
	program_u32(p, PROGRAM_FUNCTIONS + 8 * MAIN + 4, RECORD);
	program_u32(p, at + 28, 3); /* npcdata */
	p->bytes[at + 40] = func_id;
	p->bytes[at + 43] = 4;		   /* nfuncdata */
	program_u32(p, at + 44 + 8, PCSP); /* the index: 0 for 4 bytes, 8, 32, 0 */
	program_u32(p, at + 56 + 12, TREE - PROGRAM_FUNCTIONS);
	program_u64(p, PROGRAM_MODULE + 344, PROGRAM_BASE + PROGRAM_FUNCTIONS);
	memcpy(&stkbucket, p->bytes + record_of(STKBUCKET) + 4, 4);
	memcpy(&mallocgc, p->bytes + record_of(MALLOCGC) + 4, 4);
	/* Call 0 is inlined into what is at 5, which is call 8, inlined into what is nowhere. */
	program_u32(p, TREE + 4, stkbucket);
	program_u32(p, TREE + 8, 5);
	program_u32(p, TREE + 12, 33);
	program_u32(p, TREE + 8 * 16 + 4, mallocgc);
	program_u32(p, TREE + 8 * 16 + 8, PROGRAM_CODE_BYTES);
}

static void inlined_calls_come_innermost_first(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	static struct program p;

	(void)state;
	build(&p);
	inline_calls(&p, 0);
	program = open_program(&p);
	expect_frames(program, program_address_of(MAIN, 0),
		      "runtime.stkbucket main.go:0 33\nruntime.mallocgc main.go:0 0\n"
		      "main.main ?:0 0\n");
	expect_frames(program, program_address_of(MAIN, 6),
		      "runtime.mallocgc main.go:0 0\nmain.main ?:0 0\n");
}

static void wrappers_are_left_out_where_something_is_inlined(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	static struct program p;

	(void)state;
	build(&p);
	inline_calls(&p, 23);
	p.bytes[record_of(MALLOCGC) + 40] = 23;
	program = open_program(&p);
	expect_frames(program, program_address_of(MAIN, 6), "runtime.mallocgc main.go:0 0\n");
	/* A wrapper that is all there is has been running. */
	expect_frames(program, program_address_of(MALLOCGC, 6), "runtime.mallocgc main.go:0 0\n");
}

static void calls_that_are_inlined_into_each_other_end(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	static struct program p;
	char text[512] = "";
	int n;

	(void)state;
	build(&p);
	inline_calls(&p, 0);
	program_u32(&p, TREE + 8, 0);
	program = open_program(&p);
	n = golang_program_frames(program, program_address_of(MAIN, 0), append_frame, text, NULL);
	assert_int_equal(n, GOLANG_PROGRAM_MAX_FRAMES);
}

static void the_byte_before_a_return_from_a_signal_has_its_name(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	static struct program p;

	(void)state;
	build(&p);
	rename_schedinit(&p);
	program = open_program(&p);
	expect_frames(program, program_address_of(SCHEDINIT, -1),
		      "runtime.sigreturn main.go:0 0\n");
	expect_frames(program, program_address_of(SCHEDINIT, -2),
		      "runtime.mProf_Flush main.go:0 0\n");
}

static int refuse(void *context, const struct golang_program_frame *frame)
{
	(void)context;
	(void)frame;
	return -ENOSPC;
}

static void what_the_caller_returns_is_passed_on(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	static struct program p;

	(void)state;
	build(&p);
	program = open_program(&p);
	assert_int_equal(
		golang_program_frames(program, program_address_of(MAIN, 0), refuse, NULL, NULL),
		-ENOSPC);
}

/* Moves the pointers of the module data into relocations, as in position-independent programs. */
static void make_relocatable(struct program *p)
{
	Elf64_Phdr dynamic = {.p_type = PT_DYNAMIC,
			      .p_offset = DYNAMIC,
			      .p_vaddr = PROGRAM_BASE + DYNAMIC,
			      .p_filesz = 0x100};
	uint64_t n = 0;

	memcpy(p->bytes + sizeof(Elf64_Ehdr) + sizeof(dynamic), &dynamic, sizeof(dynamic));
	p->bytes[offsetof(Elf64_Ehdr, e_phnum)] = 2;
	for (size_t off = PROGRAM_MODULE; off < PROGRAM_HEADER; off += 8) {
		uint64_t value;
		Elf64_Rela rela = {.r_offset = PROGRAM_BASE + off,
				   .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE)};

		memcpy(&value, p->bytes + off, sizeof(value));
		if (value < PROGRAM_BASE || value >= PROGRAM_BASE + PROGRAM_BYTES)
			continue;
		rela.r_addend = (int64_t)value;
		memcpy(p->bytes + RELOCATIONS + n++ * sizeof(rela), &rela, sizeof(rela));
		program_u64(p, off, 0);
	}
	program_u64(p, DYNAMIC, DT_RELA);
	program_u64(p, DYNAMIC + 8, PROGRAM_BASE + RELOCATIONS);
	program_u64(p, DYNAMIC + 16, DT_RELASZ);
	program_u64(p, DYNAMIC + 24, n * sizeof(Elf64_Rela));
}

static void pointers_of_position_independent_programs_are_filled_in(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	static struct program p;
	struct elf_unwind_table t;

	(void)state;
	build(&p);
	inline_calls(&p, 0);
	make_relocatable(&p);
	t = unwind(&p);
	EXPECT(t, MAIN, 12, SP(40), SAVED);
	elf_unwind_table_release(&t);
	program = open_program(&p);
	expect_frames(program, program_address_of(MAIN, 6),
		      "runtime.mallocgc main.go:0 0\nmain.main ?:0 0\n");
}

static void what_is_no_Go_program_is_refused(void **state)
{
	struct golang_program *program = NULL;
	static struct program p;

	(void)state;
	assert_int_equal(try_open(&p, &program), -ENOTSUP);
	build(&p);
	program_u32(&p, PROGRAM_HEADER, 0);
	assert_int_equal(try_open(&p, &program), -ENOTSUP);
	assert_null(program);
}

static void a_version_that_is_not_known_is_refused(void **state)
{
	struct golang_program *program = NULL;
	static struct program p;

	(void)state;
	build(&p);
	memcpy(p.bytes + PROGRAM_BUILDINFO + 32, "\x08go1.99.3", 9);
	assert_int_equal(try_open(&p, &program), -ENOTSUP);
	/* Go 1.19 had another table. */
	memcpy(p.bytes + PROGRAM_BUILDINFO + 32, "\x08go1.19.3", 9);
	assert_int_equal(try_open(&p, &program), -ENOTSUP);
	assert_null(program);
}

static void another_machine_has_names_but_no_rows(void **state)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	struct elf_unwind_table t = {0};
	static struct program p;
	uint16_t machine = EM_AARCH64;

	(void)state;
	build(&p);
	memcpy(p.bytes + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
	program = open_program(&p);
	expect_frames(program, program_address_of(MAIN, 5), "main.main main.go:0 0\n");
	assert_int_equal(golang_program_unwind(program, &t, NULL), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_follow_the_stack_pointer),
		cmocka_unit_test(the_outermost_function_is_the_end),
		cmocka_unit_test(assembly_saves_the_frame_pointer_only_if_its_code_does),
		cmocka_unit_test(a_switch_of_stacks_is_crossed_by_the_frame_pointer),
		cmocka_unit_test(a_return_from_a_signal_is_known_one_byte_before),
		cmocka_unit_test(a_function_without_a_table_has_frame_pointers),
		cmocka_unit_test(a_damaged_table_leaves_the_rest_unsupported),
		cmocka_unit_test(a_damaged_record_is_left_out),
		cmocka_unit_test(functions_that_do_not_ascend_are_refused),
		cmocka_unit_test(addresses_have_names_files_and_lines),
		cmocka_unit_test(inlined_calls_come_innermost_first),
		cmocka_unit_test(wrappers_are_left_out_where_something_is_inlined),
		cmocka_unit_test(calls_that_are_inlined_into_each_other_end),
		cmocka_unit_test(the_byte_before_a_return_from_a_signal_has_its_name),
		cmocka_unit_test(what_the_caller_returns_is_passed_on),
		cmocka_unit_test(pointers_of_position_independent_programs_are_filled_in),
		cmocka_unit_test(what_is_no_Go_program_is_refused),
		cmocka_unit_test(a_version_that_is_not_known_is_refused),
		cmocka_unit_test(another_machine_has_names_but_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
