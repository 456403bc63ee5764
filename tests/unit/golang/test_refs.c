/* tests/unit/golang/test_refs.c: real encodings of instructions that touch variables. */
#include "golang/binary/refs.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "mem_fake.h"

#define CODE ((uint64_t)0x401000)
#define VARS ((uint64_t)0x500000)

static const struct golang_module module = {
	.noptrdata = VARS, .enoptrbss = VARS + 0x100000, .data = VARS, .ebss = VARS + 0x100000};
static struct golang_refs refs;

/* The displacement from the end of an instruction that ends at off to a variable. */
static void put_displacement(uint8_t *at, size_t end_off, uint64_t target)
{
	int32_t displacement = (int32_t)(target - (CODE + end_off));

	memcpy(at, &displacement, sizeof(displacement));
}

struct x86_case {
	const char *text;
	uint8_t bytes[4]; /* up to the displacement */
	size_t len;
	size_t immediate; /* bytes after it */
	enum golang_ref_kind kind;
	unsigned int width;
};

static const struct x86_case x86_cases[] = {
	{"mov rax, [rip+x]", {0x48, 0x8b, 0x05}, 3, 0, GOLANG_REF_LOAD, 8},
	{"mov r9, [rip+x]", {0x4c, 0x8b, 0x0d}, 3, 0, GOLANG_REF_LOAD, 8},
	{"mov ecx, [rip+x]", {0x90, 0x8b, 0x0d}, 3, 0, GOLANG_REF_LOAD, 4},
	{"mov r8d, [rip+x]", {0x44, 0x8b, 0x05}, 3, 0, GOLANG_REF_LOAD, 4},
	{"movzx eax, byte [rip+x]", {0x90, 0x0f, 0xb6, 0x05}, 4, 0, GOLANG_REF_LOAD, 1},
	{"lea rdx, [rip+x]", {0x48, 0x8d, 0x15}, 3, 0, GOLANG_REF_ADDRESS, 8},
	{"mov [rip+x], rcx", {0x48, 0x89, 0x0d}, 3, 0, GOLANG_REF_STORE, 8},
	{"mov [rip+x], eax", {0x90, 0x89, 0x05}, 3, 0, GOLANG_REF_STORE, 4},
	{"mov qword [rip+x], 0", {0x48, 0xc7, 0x05}, 3, 4, GOLANG_REF_STORE, 8},
	{"mov dword [rip+x], 0", {0x90, 0xc7, 0x05}, 3, 4, GOLANG_REF_STORE, 4},
	{"mov byte [rip+x], 1", {0x90, 0xc6, 0x05}, 3, 1, GOLANG_REF_STORE, 1},
	{"cmp qword [rip+x], 0", {0x48, 0x83, 0x3d}, 3, 1, GOLANG_REF_COMPARE, 8},
	{"cmp dword [rip+x], 0", {0x90, 0x83, 0x3d}, 3, 1, GOLANG_REF_COMPARE, 4},
	{"cmp qword [rip+x], imm32", {0x48, 0x81, 0x3d}, 3, 4, GOLANG_REF_COMPARE, 8},
	{"cmp byte [rip+x], 0", {0x90, 0x80, 0x3d}, 3, 1, GOLANG_REF_COMPARE, 1},
	{"cmp [rip+x], rax", {0x48, 0x39, 0x05}, 3, 0, GOLANG_REF_COMPARE, 8},
	{"cmp rax, [rip+x]", {0x48, 0x3b, 0x05}, 3, 0, GOLANG_REF_COMPARE, 8},
	{"lock cmpxchg [rip+x], ecx", {0xf0, 0x0f, 0xb1, 0x0d}, 4, 0, GOLANG_REF_OTHER, 4},
	{"xadd [rip+x], rcx", {0x48, 0x0f, 0xc1, 0x0d}, 4, 0, GOLANG_REF_OTHER, 8},
};

static void amd64_operands_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(x86_cases); i++) {
		const struct x86_case *c = &x86_cases[i];
		/* Filled with ret, which no case contains. */
		uint8_t code[32];
		size_t end = 8 + c->len + 4 + c->immediate;

		memset(code, 0xc3, sizeof(code));
		memcpy(code + 8, c->bytes, c->len);
		put_displacement(code + 8 + c->len, end, VARS + 0x1234 * 8);
		memset(code + 8 + c->len + 4, 0, c->immediate);
		golang_refs_decode(view_of(code, sizeof(code)), CODE, EM_X86_64, &module, &refs);
		if (refs.len != 1)
			fail_msg("%s: %zu references", c->text, refs.len);
		assert_int_equal(refs.refs[0].target, VARS + 0x1234 * 8);
		assert_int_equal(refs.refs[0].kind, c->kind);
		if (refs.refs[0].width != c->width)
			fail_msg("%s: width %u", c->text, refs.refs[0].width);
		assert_in_range(refs.refs[0].pc, CODE + 8, CODE + 8 + 3);
		assert_true(golang_refs_has(&refs, VARS + 0x1234 * 8));
		assert_false(golang_refs_has(&refs, VARS + 0x1234 * 8 + 1));
	}
}

static void amd64_references_backwards_and_in_order(void **state)
{
	uint8_t code[32];
	struct golang_module low = module;

	(void)state;
	memset(code, 0xc3, sizeof(code));
	low.data = 0x300000;
	low.ebss = 0x400000;
	memcpy(code, "\x48\x8b\x05", 3);
	put_displacement(code + 3, 7, 0x300010);
	memcpy(code + 7, "\x48\x8d\x0d", 3);
	put_displacement(code + 10, 14, VARS);
	golang_refs_decode(view_of(code, sizeof(code)), CODE, EM_X86_64, &low, &refs);
	assert_int_equal(refs.len, 2);
	assert_int_equal(refs.refs[0].target, 0x300010);
	assert_int_equal(refs.refs[1].target, VARS);
	assert_true(refs.refs[0].pc < refs.refs[1].pc);
}

static void amd64_other_operands_are_no_references(void **state)
{
	static const struct {
		uint8_t bytes[3];
	} others[] = {
		{{0x48, 0x8b, 0x04}}, /* mod 00, r/m 100: a SIB byte follows */
		{{0x48, 0x8b, 0x45}}, /* mod 01 */
		{{0x48, 0x8b, 0xc5}}, /* a register */
		{{0x48, 0x01, 0x05}}, /* an opcode that Go has no use for here */
		{{0x90, 0xe8, 0x05}}, /* call */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		uint8_t code[16];

		memset(code, 0xc3, sizeof(code));
		memcpy(code, others[i].bytes, 3);
		put_displacement(code + 3, 7, VARS + 16);
		golang_refs_decode(view_of(code, sizeof(code)), CODE, EM_X86_64, &module, &refs);
		assert_int_equal(refs.len, 0);
	}
}

static void targets_outside_of_the_data_are_no_references(void **state)
{
	static const uint64_t targets[] = {VARS - 1, VARS + 0x100000, CODE, 0x7fffffff};
	uint8_t code[16];

	(void)state;
	memset(code, 0xc3, sizeof(code));
	memcpy(code, "\x48\x8b\x05", 3);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		put_displacement(code + 3, 7, targets[i]);
		golang_refs_decode(view_of(code, sizeof(code)), CODE, EM_X86_64, &module, &refs);
		assert_int_equal(refs.len, 0);
	}
}

/* What the assembler makes of these, at CODE. */
enum {
	ARM_ADRP_X0 = 0xb00007e0, /* adrp x0, 0x4fe000 */
	ARM_ADRP_X0_VARS = 0xf00007e0 /* adrp x0, 0x500000 */,
	ARM_ADRP_X1_VARS = 0xf00007e1,
	ARM_ADD_X0 = 0x91042000,	 /* add x0, x0, #0x108 */
	ARM_ADD_X2_X1 = 0x91042022,	 /* add x2, x1, #0x108 */
	ARM_ADD_X0_SHIFTED = 0x91400400, /* add x0, x0, #0x1, lsl #12 */
	ARM_LDR_X2_X0 = 0xf9408402,	 /* ldr x2, [x0, #0x108] */
	ARM_LDR_W2_X0 = 0xb9410802,	 /* ldr w2, [x0, #0x108] */
	ARM_LDRB_W2_X0 = 0x39442002,	 /* ldrb w2, [x0, #0x108] */
	ARM_STR_X2_X0 = 0xf9008402,	 /* str x2, [x0, #0x108] */
	ARM_STR_W2_X0 = 0xb9010802,	 /* str w2, [x0, #0x108] */
	ARM_LDR_Q2_X0 = 0x3dc04002,	 /* ldr q2, [x0, #0x100] */
	ARM_NOP = 0xd503201f,
};

static void decode_arm(const uint32_t *words, size_t n)
{
	golang_refs_decode(view_of(words, 4 * n), CODE, EM_AARCH64, &module, &refs);
}

static void assert_arm(uint32_t use, uint64_t target, enum golang_ref_kind kind, unsigned int width)
{
	const uint32_t words[] = {ARM_ADRP_X0_VARS, use};

	decode_arm(words, 2);
	assert_int_equal(refs.len, 1);
	assert_int_equal(refs.refs[0].pc, CODE + 4);
	assert_int_equal(refs.refs[0].target, target);
	assert_int_equal(refs.refs[0].kind, kind);
	assert_int_equal(refs.refs[0].width, width);
}

static void arm64_pairs_are_found(void **state)
{
	(void)state;
	assert_arm(ARM_ADD_X0, VARS + 0x108, GOLANG_REF_ADDRESS, 8);
	assert_arm(ARM_ADD_X0_SHIFTED, VARS + 0x1000, GOLANG_REF_ADDRESS, 8);
	assert_arm(ARM_LDR_X2_X0, VARS + 0x108, GOLANG_REF_LOAD, 8);
	assert_arm(ARM_LDR_W2_X0, VARS + 0x108, GOLANG_REF_LOAD, 4);
	assert_arm(ARM_LDRB_W2_X0, VARS + 0x108, GOLANG_REF_LOAD, 1);
	assert_arm(ARM_STR_X2_X0, VARS + 0x108, GOLANG_REF_STORE, 8);
	assert_arm(ARM_STR_W2_X0, VARS + 0x108, GOLANG_REF_STORE, 4);
	assert_arm(ARM_LDR_Q2_X0, VARS + 0x100, GOLANG_REF_LOAD, 16);
}

static void arm64_pair_needs_the_same_register(void **state)
{
	const uint32_t other[] = {ARM_ADRP_X1_VARS, ARM_LDR_X2_X0};
	const uint32_t same[] = {ARM_ADRP_X1_VARS, ARM_ADD_X2_X1};

	(void)state;
	decode_arm(other, 2);
	assert_int_equal(refs.len, 0);
	decode_arm(same, 2);
	assert_int_equal(refs.len, 1);
}

static void arm64_page_serves_four_instructions(void **state)
{
	const uint32_t near[] = {ARM_ADRP_X0_VARS, ARM_NOP, ARM_NOP, ARM_NOP, ARM_LDR_X2_X0};
	const uint32_t far[] = {ARM_ADRP_X0_VARS, ARM_NOP, ARM_NOP,
				ARM_NOP,	  ARM_NOP, ARM_LDR_X2_X0};
	const uint32_t changed[] = {ARM_ADRP_X0_VARS, ARM_ADD_X0, ARM_LDR_X2_X0};

	(void)state;
	decode_arm(near, ARRAY_SIZE(near));
	assert_int_equal(refs.len, 1);
	decode_arm(far, ARRAY_SIZE(far));
	assert_int_equal(refs.len, 0);
	/* After the ADD the register is no page any more. */
	decode_arm(changed, ARRAY_SIZE(changed));
	assert_int_equal(refs.len, 1);
	assert_int_equal(refs.refs[0].kind, GOLANG_REF_ADDRESS);
}

static void arm64_page_outside_of_the_data_is_no_reference(void **state)
{
	const uint32_t words[] = {ARM_ADRP_X0, ARM_LDR_X2_X0};

	(void)state;
	decode_arm(words, 2);
	assert_int_equal(refs.len, 0);
}

static void arm64_adr_is_a_reference(void **state)
{
	const uint32_t forward[] = {0x107ff800}; /* adr x0, CODE + 0xfff00 */
	const uint32_t back[] = {0x10800001};	 /* adr x1, CODE - 0x100000 */
	struct golang_module low = module;

	(void)state;
	decode_arm(forward, 1);
	assert_int_equal(refs.len, 1);
	assert_int_equal(refs.refs[0].target, CODE + 0xfff00);
	assert_int_equal(refs.refs[0].kind, GOLANG_REF_ADDRESS);
	low.data = 0x300000;
	low.ebss = 0x302000;
	golang_refs_decode(view_of(back, 4), CODE, EM_AARCH64, &low, &refs);
	assert_int_equal(refs.len, 1);
	assert_int_equal(refs.refs[0].target, CODE - 0x100000);
}

static void references_beyond_the_maximum_are_left(void **state)
{
	static uint8_t code[7 * (GOLANG_REFS_MAX + 100)];

	(void)state;
	for (size_t i = 0; i < GOLANG_REFS_MAX + 100; i++) {
		memcpy(code + 7 * i, "\x48\x8b\x05", 3);
		put_displacement(code + 7 * i + 3, 7 * i + 7, VARS + 8 * i);
	}
	golang_refs_decode(view_of(code, sizeof(code)), CODE, EM_X86_64, &module, &refs);
	assert_int_equal(refs.len, GOLANG_REFS_MAX);
}

static void short_code_and_unknown_machines_have_none(void **state)
{
	static const uint8_t code[] = {0x48, 0x8b, 0x05, 0xf9, 0xef, 0x0f, 0x00};

	(void)state;
	golang_refs_decode(view_of(code, 7), CODE, EM_X86_64, &module, &refs);
	assert_int_equal(refs.len, 1);
	for (size_t len = 0; len < 7; len++) {
		golang_refs_decode(view_of(code, len), CODE, EM_X86_64, &module, &refs);
		assert_int_equal(refs.len, 0);
		golang_refs_decode(view_of(code, len), CODE, EM_AARCH64, &module, &refs);
		assert_int_equal(refs.len, 0);
	}
	golang_refs_decode(view_of(code, 7), CODE, EM_RISCV, &module, &refs);
	assert_int_equal(refs.len, 0);
}

static void code_of_a_function_is_read(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	static uint8_t code[100000];
	struct golang_func func = {.entry = CODE, .end = CODE + sizeof(code)};
	struct err err;

	(void)state;
	memset(code, 0x90, sizeof(code));
	memcpy(code + 16, "\x48\x8b\x05", 3);
	put_displacement(code + 19, 23, VARS + 8);
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, CODE, code, sizeof(code)), 0);
	if (proc_mem_machine(mem) != EM_X86_64)
		skip();
	golang_refs_of(&module, mem, &func, &refs);
	assert_int_equal(refs.len, 1);
	/* A function that does not exist, or ends where nothing is. */
	func.entry = 0;
	golang_refs_of(&module, mem, &func, &refs);
	assert_int_equal(refs.len, 0);
	func = (struct golang_func){.entry = CODE + sizeof(code) - 8, .end = UINT64_MAX};
	golang_refs_of(&module, mem, &func, &refs);
	assert_int_equal(refs.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amd64_operands_are_found),
		cmocka_unit_test(amd64_references_backwards_and_in_order),
		cmocka_unit_test(amd64_other_operands_are_no_references),
		cmocka_unit_test(targets_outside_of_the_data_are_no_references),
		cmocka_unit_test(arm64_pairs_are_found),
		cmocka_unit_test(arm64_pair_needs_the_same_register),
		cmocka_unit_test(arm64_page_serves_four_instructions),
		cmocka_unit_test(arm64_page_outside_of_the_data_is_no_reference),
		cmocka_unit_test(arm64_adr_is_a_reference),
		cmocka_unit_test(references_beyond_the_maximum_are_left),
		cmocka_unit_test(short_code_and_unknown_machines_have_none),
		cmocka_unit_test(code_of_a_function_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
