/* tests/unit/cpu/test_walk.c: the walk of a stack, over memory and tables made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cpu/bpf/walk.h"

/* Where things are. */
#define CODE 0x401000ULL      /* with a rule: the return address is at the stack pointer */
#define BARE 0x402000ULL      /* without */
#define CHAINED 0x403000ULL   /* known to keep frame pointers */
#define OUTERMOST 0x404000ULL /* the last of all frames */
#define JIT 0x700000ULL
#define PARTS 0x10000000ULL /* a large file: a rule in its last part only */
#define STACK 0x7ff000000000ULL
#define WORDS 4096

enum {
	RULE_NONE,
	RULE_SP,
	RULE_CHAIN,
	RULE_END,
	N_RULES,
};

static struct cpu_sampler_copy record;
static struct cpu_sampler_memo memos[1 << CPU_SAMPLER_MEMO_BITS];
static __u64 hints[1 << CPU_SAMPLER_HINT_BITS];
static size_t n_chunks_read, n_mappings_read;
static struct cpu_sampler_chunk *chunk;
static uint64_t stack[WORDS];
static struct cpu_sampler_mapping mappings[] = {
	{.start = CODE, .end = 0x405000, .file = 0, .generation = 1},
	{.start = JIT, .end = JIT + 0x1000, .file = CPU_SAMPLER_NO_FILE},
	{.start = PARTS, .end = PARTS + (3ULL << 25), .file = 1, .generation = 2},
};
static struct cpu_sampler_file files[] = {
	{.state = CPU_SAMPLER_FILE_TABLE,
	 .index = 0,
	 .n_pages = 4 * (0x1000 >> CPU_SAMPLER_PAGE_BITS),
	 .first_page = CODE >> CPU_SAMPLER_PAGE_BITS},
	{.state = CPU_SAMPLER_FILE_PARTS,
	 .index = 2,
	 .n_pages = 3 << CPU_SAMPLER_PART_BITS,
	 .first_page = PARTS >> CPU_SAMPLER_PAGE_BITS},
	{.state = CPU_SAMPLER_FILE_NEW},
	{.state = CPU_SAMPLER_FILE_CHAIN},
	{.state = CPU_SAMPLER_FILE_TABLE,
	 .index = 100,
	 .n_pages = 1,
	 .first_page = (PARTS >> CPU_SAMPLER_PAGE_BITS) + (2 << CPU_SAMPLER_PART_BITS)},
};
static const struct elf_unwind_rule rules[N_RULES] = {
	[RULE_SP] = {.cfa = ELF_UNWIND_SP, .cfa_off = 8},
	[RULE_CHAIN] = {.cfa = ELF_UNWIND_CHAIN},
	[RULE_END] = {.cfa = ELF_UNWIND_END},
};

static struct cpu_sampler_copy *cpu_walk_record(const struct cpu_walk *w)
{
	(void)w;
	return &record;
}

static const struct cpu_sampler_mapping *cpu_walk_mapping(const struct cpu_walk *w, __u32 number)
{
	(void)w;
	n_mappings_read++;
	return number < ARRAY_SIZE(mappings) ? &mappings[number] : NULL;
}

static const struct cpu_sampler_file *cpu_walk_file(const struct cpu_walk *w, __u32 id)
{
	(void)w;
	return id < ARRAY_SIZE(files) ? &files[id] : NULL;
}

static const struct cpu_sampler_chunk *cpu_walk_chunk(const struct cpu_walk *w, __u32 number)
{
	(void)w;
	n_chunks_read++;
	return number ? NULL : chunk;
}

static struct cpu_sampler_memo *cpu_walk_memo(const struct cpu_walk *w, __u32 number)
{
	(void)w;
	return &memos[number];
}

static __u64 *cpu_walk_hint(const struct cpu_walk *w, __u32 number)
{
	(void)w;
	return &hints[number];
}

static const struct elf_unwind_rule *cpu_walk_rule(const struct cpu_walk *w, __u32 number)
{
	(void)w;
	return number < N_RULES ? &rules[number] : NULL;
}

static long cpu_walk_read(struct cpu_walk *w, void *dst, __u32 size, __u64 address)
{
	uint64_t at = address - STACK;

	(void)w;
	if (at > sizeof(stack) || size > sizeof(stack) - at)
		return -1;
	memcpy(dst, (const char *)stack + at, size);
	return 0;
}

static void set_page(uint32_t index, uint32_t row, uint32_t rule)
{
	chunk->words[index] = row;
	chunk->words[index + 1] = 1;
	chunk->words[row] = CPU_SAMPLER_ROW(0, rule);
}

static int setup(void **state)
{
	static const uint32_t of_pages[] = {RULE_SP, RULE_NONE, RULE_CHAIN, RULE_END};

	(void)state;
	chunk = calloc(1, sizeof(*chunk));
	assert_non_null(chunk);
	for (uint32_t i = 0; i < files[0].n_pages; i++)
		set_page(2 * i, 50 + i, of_pages[i / (0x1000 >> CPU_SAMPLER_PAGE_BITS)]);
	set_page(100, 200, CPU_SAMPLER_RULE_SHORT | 1); /* the same as a short rule */
	memset(stack, 0, sizeof(stack));
	memset(&record, 0, sizeof(record));
	memset(memos, 0, sizeof(memos));
	memset(hints, 0, sizeof(hints));
	record.start_stack = STACK + sizeof(stack);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(chunk);
	return 0;
}

static uint64_t at(size_t word)
{
	return STACK + 8 * word;
}

/* From pc, with the stack pointer and the frame pointer at these words; fp 0 stays 0. */
static struct cpu_walk walk(uint64_t pc, size_t sp, uint64_t fp, bool keeps_fp)
{
	struct cpu_walk w = {.pc = pc,
			     .sp = at(sp),
			     .fp = fp,
			     .n = ARRAY_SIZE(mappings),
			     .keeps_fp = keeps_fp,
			     .exact = 1,
			     .end = CPU_SAMPLER_END_TRUNCATED};

	for (int i = 0; i < CPU_SAMPLER_FRAMES_MAX; i++)
		if (cpu_walk_step(&w))
			break;
	return w;
}

static void assert_walked(const struct cpu_walk *w, uint32_t n, enum cpu_sampler_end end)
{
	assert_int_equal(w->n_user, n);
	assert_int_equal(w->end, end);
}

static void rules_lead_to_the_root(void **state)
{
	struct cpu_walk w;

	(void)state;
	stack[10] = CODE + 0x20;
	stack[11] = OUTERMOST + 0x10;
	w = walk(CODE + 0x10, 10, 0x1234, false);
	assert_walked(&w, 3, CPU_SAMPLER_END_ROOT);
}

/* Three frames with rules, to the root. */
static void walk_three(void)
{
	struct cpu_walk w;

	stack[10] = CODE + 0x20;
	stack[11] = OUTERMOST + 0x10;
	n_chunks_read = n_mappings_read = 0;
	w = walk(CODE + 0x10, 10, 0, false);
	assert_walked(&w, 3, CPU_SAMPLER_END_ROOT);
}

static void rules_of_return_addresses_are_remembered(void **state)
{
	(void)state;
	walk_three();
	walk_three();
	/* Of the innermost frame. */
	assert_int_equal(n_chunks_read, 1);
}

static void remembered_rules_are_of_one_file(void **state)
{
	(void)state;
	walk_three();
	mappings[0].generation += 100;
	walk_three();
	mappings[0].generation -= 100;
	assert_int_equal(n_chunks_read, 3);
}

/* As another CPU may leave it for a moment. */
static void half_written_memo_is_not_used(void **state)
{
	(void)state;
	walk_three();
	for (size_t i = 0; i < ARRAY_SIZE(memos); i++)
		memos[i].rule ^= memos[i].check ? 0x100 : 0;
	walk_three();
	assert_int_equal(n_chunks_read, 3);
}

static void wrong_hints_do_no_harm(void **state)
{
	static const __u64 wrong[] = {1, 2, ARRAY_SIZE(mappings), UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		for (size_t n = 0; n < ARRAY_SIZE(hints); n++)
			hints[n] = wrong[i];
		walk_three();
	}
	/* By now it is known. */
	walk_three();
	assert_int_equal(n_mappings_read, 1);
}

/* Its caller's frame pointer is still that of a frame far below. */
static void compiled_code_that_keeps_none_hides_its_callers(void **state)
{
	struct cpu_walk w;

	(void)state;
	stack[100] = at(200);
	stack[101] = OUTERMOST + 0x10;
	w = walk(JIT + 0x10, 10, at(100), false);
	assert_walked(&w, 2, CPU_SAMPLER_END_NO_RULE);
	w = walk(JIT + 0x10, 10, at(100), true);
	assert_walked(&w, 2, CPU_SAMPLER_END_ROOT);
}

static void text_without_rules_makes_a_stack_unsure(void **state)
{
	struct cpu_walk w;

	(void)state;
	stack[10] = BARE + 0x20;
	stack[100] = at(200);
	stack[101] = OUTERMOST + 0x10;
	w = walk(CODE + 0x10, 10, at(100), false);
	assert_walked(&w, 3, CPU_SAMPLER_END_NO_RULE);
	/* A rule says that there is a frame pointer: Go's do. */
	stack[10] = CHAINED + 0x20;
	w = walk(CODE + 0x10, 10, at(100), false);
	assert_walked(&w, 3, CPU_SAMPLER_END_ROOT);
}

static void frame_pointer_of_0_is_no_root_by_itself(void **state)
{
	struct cpu_walk w;

	(void)state;
	stack[10] = BARE + 0x20;
	w = walk(CODE + 0x10, 10, 0, false);
	assert_walked(&w, 2, CPU_SAMPLER_END_NO_RULE);
	w = walk(JIT + 0x10, 10, 0, true);
	assert_walked(&w, 1, CPU_SAMPLER_END_NO_RULE);
	stack[10] = CHAINED + 0x20;
	w = walk(CODE + 0x10, 10, 0, false);
	assert_walked(&w, 2, CPU_SAMPLER_END_ROOT);
}

/* What starts a program needs no rules: musl's has none, and uses the register. */
static void program_begins_at_the_start_of_its_stack(void **state)
{
	const size_t top = WORDS - 20;
	struct cpu_walk w;

	(void)state;
	stack[top] = BARE + 0x20;
	w = walk(CODE + 0x10, top, 0, false);
	assert_walked(&w, 2, CPU_SAMPLER_END_ROOT);
	/* The arguments of main. */
	stack[WORDS - 4] = 0x7fff12345678;
	stack[WORDS - 3] = 0x7fff12345690;
	w = walk(CODE + 0x10, top, at(WORDS - 4), false);
	assert_walked(&w, 2, CPU_SAMPLER_END_ROOT);
	/* A function that was called from there is not the beginning. */
	w = walk(BARE + 0x10, top, 0, false);
	assert_walked(&w, 1, CPU_SAMPLER_END_NO_RULE);
	w = walk(BARE + 0x10, WORDS, 0, false);
	assert_walked(&w, 1, CPU_SAMPLER_END_ROOT);
}

static void thread_begins_below_its_own_data(void **state)
{
	struct cpu_walk w;

	(void)state;
	stack[1000] = BARE + 0x20;
	record.self = at(1200);
	w = walk(CODE + 0x10, 1000, 0, false);
	assert_walked(&w, 2, CPU_SAMPLER_END_ROOT);
	record.self = at(2200);
	w = walk(CODE + 0x10, 1000, 0, false);
	assert_walked(&w, 2, CPU_SAMPLER_END_NO_RULE);
}

static void real_callers_near_the_start_are_not_lost(void **state)
{
	const size_t top = WORDS - 40;
	struct cpu_walk w;

	(void)state;
	stack[top] = BARE + 0x20;
	stack[top + 4] = at(top + 10);
	stack[top + 5] = OUTERMOST + 0x10;
	w = walk(CODE + 0x10, top, at(top + 4), false);
	assert_walked(&w, 3, CPU_SAMPLER_END_NO_RULE);
}

static void parts_of_a_large_file_are_asked_for_alone(void **state)
{
	struct cpu_walk w;

	(void)state;
	stack[10] = OUTERMOST + 0x10;
	w = walk(PARTS + 0x10, 10, 0, false);
	assert_walked(&w, 1, CPU_SAMPLER_END_NOT_LOADED);
	assert_int_equal(w.wanted, 2 + 1);
	w = walk(PARTS + (2ULL << 25) + 0x10, 10, 0, false);
	assert_walked(&w, 2, CPU_SAMPLER_END_ROOT);
	assert_int_equal(w.wanted, 0);
	/* The one in between has no tables. */
	w = walk(PARTS + (1ULL << 25) + 0x10, 10, 0, false);
	assert_walked(&w, 1, CPU_SAMPLER_END_NO_RULE);
	/* Frames name the file. */
	assert_int_equal(record.stack.frames[0] >> CPU_SAMPLER_FRAME_FILE_SHIFT, 1 + 1);
}

static void deep_stacks_are_whole_up_to_the_limit(void **state)
{
	struct cpu_walk w;

	(void)state;
	for (size_t i = 0; i < 510; i++)
		stack[10 + i] = CODE + 0x20;
	stack[10 + 510] = OUTERMOST + 0x10;
	w = walk(CODE + 0x10, 10, 0, false);
	assert_walked(&w, 512, CPU_SAMPLER_END_ROOT);
	stack[10 + 510] = CODE + 0x20;
	stack[10 + 511] = OUTERMOST + 0x10;
	w = walk(CODE + 0x10, 10, 0, false);
	assert_walked(&w, 512, CPU_SAMPLER_END_TRUNCATED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rules_lead_to_the_root, setup, teardown),
		cmocka_unit_test_setup_teardown(rules_of_return_addresses_are_remembered, setup,
						teardown),
		cmocka_unit_test_setup_teardown(remembered_rules_are_of_one_file, setup, teardown),
		cmocka_unit_test_setup_teardown(half_written_memo_is_not_used, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_hints_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(compiled_code_that_keeps_none_hides_its_callers,
						setup, teardown),
		cmocka_unit_test_setup_teardown(text_without_rules_makes_a_stack_unsure, setup,
						teardown),
		cmocka_unit_test_setup_teardown(frame_pointer_of_0_is_no_root_by_itself, setup,
						teardown),
		cmocka_unit_test_setup_teardown(program_begins_at_the_start_of_its_stack, setup,
						teardown),
		cmocka_unit_test_setup_teardown(thread_begins_below_its_own_data, setup, teardown),
		cmocka_unit_test_setup_teardown(real_callers_near_the_start_are_not_lost, setup,
						teardown),
		cmocka_unit_test_setup_teardown(parts_of_a_large_file_are_asked_for_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(deep_stacks_are_whole_up_to_the_limit, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
