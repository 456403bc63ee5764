/* tests/unit/cpu/test_tables.c: unwind tables as BPF reads them, without BPF. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cpu/unwind/file_headers.h"
#include "cpu/unwind/file_rows.h"
#include "cpu/unwind/file_tables.h"
#include "cpu/unwind/ranges.h"
#include "cpu/unwind/rules.h"
#include "cpu/unwind/tables.h"
#include "elf/image.h"
#include "proc/maps.h"
#include "unwind_table.h"

#define USER 1000
#define OTHER 1001

struct fixture {
	struct elf_unwind_rule *rules;
	struct cpu_tables *tables;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->rules = calloc(CPU_SAMPLER_RULES, sizeof(*f->rules));
	assert_non_null(f->rules);
	assert_int_equal(cpu_tables_new(f->rules, -1, &f->tables, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cpu_tables_free(f->tables);
	free(f->rules);
	free(f);
	return 0;
}

static uint32_t word_at(const struct fixture *f, uint32_t word)
{
	const uint32_t *chunk = cpu_tables_chunk(f->tables, word >> CPU_SAMPLER_CHUNK_BITS);

	assert_non_null(chunk);
	return chunk[word & (CPU_SAMPLER_CHUNK_WORDS - 1)];
}

/* What walk_step() does, step by step. */
static struct elf_unwind_rule lookup(const struct fixture *f, const struct cpu_table *t,
				     uint64_t vaddr)
{
	uint64_t page = (vaddr >> CPU_SAMPLER_PAGE_BITS) - t->first_page;
	uint32_t first, n, found = 0;

	if (page >= t->n_pages)
		return (struct elf_unwind_rule){0};
	first = word_at(f, t->index + 2 * (uint32_t)page);
	n = word_at(f, t->index + 2 * (uint32_t)page + 1);
	assert_true(n > 0);
	/* One chunk holds all rows of a page. */
	assert_int_equal(first >> CPU_SAMPLER_CHUNK_BITS,
			 (first + n - 1) >> CPU_SAMPLER_CHUNK_BITS);
	assert_int_equal(CPU_SAMPLER_ROW_OFFSET(word_at(f, first)), 0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t row = word_at(f, first + i);

		if (CPU_SAMPLER_ROW_OFFSET(row) > (vaddr & (CPU_SAMPLER_PAGE_SIZE - 1)))
			break;
		found = CPU_SAMPLER_ROW_RULE(row);
	}
	if (!(found & CPU_SAMPLER_RULE_SHORT))
		return f->rules[found];
	n = CPU_SAMPLER_SHORT_FP(found);
	return (struct elf_unwind_rule){.cfa = ELF_UNWIND_SP,
					.fp = n ? ELF_UNWIND_FP_SAVED : ELF_UNWIND_FP_SAME,
					.fp_off = n ? (int16_t)(-8 * (int)(n + 1)) : 0,
					.cfa_off = (int32_t)CPU_SAMPLER_SHORT_CFA(found)};
}

struct some_rows {
	const struct elf_unwind_row *rows;
	size_t n;
};

/* In batches of odd sizes. */
static int hand_out(void *context, const struct elf_unwind_sink *sink)
{
	const struct some_rows *some = context;
	int r = 0;

	for (size_t i = 0, n = 1; r >= 0 && i < some->n; i += n, n = n * 2 + 1)
		r = sink->rows(sink->context, some->rows + i, MIN(n, some->n - i));
	return r;
}

static int add_of(struct fixture *f, uid_t uid, const struct elf_unwind_row *rows, size_t n,
		  struct cpu_table *ret)
{
	struct some_rows some = {.rows = rows, .n = n};

	return cpu_tables_add(f->tables, uid, hand_out, &some, ret);
}

static int add(struct fixture *f, const struct elf_unwind_row *rows, size_t n,
	       struct cpu_table *ret)
{
	return add_of(f, 0, rows, n, ret);
}

static struct elf_unwind_rule sp_rule(int32_t offset)
{
	return (struct elf_unwind_rule){.cfa = ELF_UNWIND_SP, .cfa_off = offset};
}

static void assert_rule(struct elf_unwind_rule rule, enum elf_unwind_cfa cfa, int32_t offset)
{
	assert_int_equal(rule.cfa, cfa);
	assert_int_equal(rule.cfa_off, offset);
}

static void table_gives_the_rule_of_each_address(void **state)
{
	struct fixture *f = *state;
	struct cpu_table t = {0};
	const struct elf_unwind_row rows[] = {
		{.vaddr = 0x1100, .rule = sp_rule(8)},
		{.vaddr = 0x1104, .rule = sp_rule(16)},
		/* Holds over the whole of the pages at 0x2000 and 0x3000. */
		{.vaddr = 0x1ff0, .rule = sp_rule(32)},
		{.vaddr = 0x4000, .rule = {.cfa = ELF_UNWIND_FP, .cfa_off = 16}},
		{.vaddr = 0x4800, .rule = {.cfa = ELF_UNWIND_NONE}},
	};

	assert_int_equal(add(f, rows, ARRAY_SIZE(rows), &t), 0);
	assert_rule(lookup(f, &t, 0xfff), ELF_UNWIND_NONE, 0);
	assert_rule(lookup(f, &t, 0x10ff), ELF_UNWIND_NONE, 0);
	assert_rule(lookup(f, &t, 0x1100), ELF_UNWIND_SP, 8);
	assert_rule(lookup(f, &t, 0x1103), ELF_UNWIND_SP, 8);
	assert_rule(lookup(f, &t, 0x1104), ELF_UNWIND_SP, 16);
	assert_rule(lookup(f, &t, 0x2000), ELF_UNWIND_SP, 32);
	assert_rule(lookup(f, &t, 0x3fff), ELF_UNWIND_SP, 32);
	assert_rule(lookup(f, &t, 0x4000), ELF_UNWIND_FP, 16);
	assert_rule(lookup(f, &t, 0x47ff), ELF_UNWIND_FP, 16);
	assert_rule(lookup(f, &t, 0x4800), ELF_UNWIND_NONE, 0);
	assert_rule(lookup(f, &t, 0x5000), ELF_UNWIND_NONE, 0);
	cpu_tables_remove(f->tables, &t);
}

/* Whether they are in the rows or in the table of rules. */
static void rules_are_the_same_whatever_their_form(void **state)
{
	static const struct elf_unwind_rule some[] = {
		{.cfa = ELF_UNWIND_SP, .cfa_off = 8},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 16, .fp = ELF_UNWIND_FP_SAVED, .fp_off = -16},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 80, .fp = ELF_UNWIND_FP_SAVED, .fp_off = -64},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 80, .fp = ELF_UNWIND_FP_SAVED, .fp_off = -72},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 80, .fp = ELF_UNWIND_FP_SAVED, .fp_off = -8},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 80, .fp = ELF_UNWIND_FP_SAVED, .fp_off = -20},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 80, .fp = ELF_UNWIND_FP_SAVED, .fp_off = 16},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 80, .fp = ELF_UNWIND_FP_LOST},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 80, .fp = ELF_UNWIND_FP_AT_FP, .fp_off = -16},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 12},
		{.cfa = ELF_UNWIND_SP, .cfa_off = -8},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 0xfff * 8},
		{.cfa = ELF_UNWIND_SP, .cfa_off = 0x1000 * 8},
		{.cfa = ELF_UNWIND_FP, .cfa_off = 16, .fp = ELF_UNWIND_FP_SAVED, .fp_off = -16},
	};
	struct elf_unwind_row rows[ARRAY_SIZE(some)];
	struct fixture *f = *state;
	struct cpu_table t = {0};

	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x1000 + 32 * i, .rule = some[i]};
	assert_int_equal(add(f, rows, ARRAY_SIZE(rows), &t), 0);
	/* Four are short. */
	assert_int_equal(t.n_rules, ARRAY_SIZE(some) - 4);
	for (size_t i = 0; i < ARRAY_SIZE(some); i++) {
		struct elf_unwind_rule found = lookup(f, &t, 0x1000 + 32 * i + 5);

		assert_memory_equal(&found, &some[i], sizeof(found));
	}
	cpu_tables_remove(f->tables, &t);
}

static void table_joins_functions_over_padding(void **state)
{
	struct fixture *f = *state;
	struct cpu_table t = {0};
	const struct elf_unwind_row rows[] = {
		{.vaddr = 0x1000, .rule = sp_rule(8)},
		{.vaddr = 0x1050, .rule = {.cfa = ELF_UNWIND_NONE}},
		{.vaddr = 0x1058, .rule = sp_rule(8)},
		{.vaddr = 0x1100, .rule = {.cfa = ELF_UNWIND_NONE}},
		{.vaddr = 0x1200, .rule = sp_rule(8)},
	};

	assert_int_equal(add(f, rows, ARRAY_SIZE(rows), &t), 0);
	assert_rule(lookup(f, &t, 0x1054), ELF_UNWIND_SP, 8);
	assert_rule(lookup(f, &t, 0x1180), ELF_UNWIND_NONE, 0);
	/* {0, sp}, {0x100, none}, {0x200, sp} */
	assert_int_equal(word_at(f, t.index + 1), 3);
	cpu_tables_remove(f->tables, &t);
}

/* One row per byte, over more than a chunk: the most that a page can have. */
static void table_larger_than_a_chunk_is_whole(void **state)
{
	struct fixture *f = *state;
	const size_t n = CPU_SAMPLER_CHUNK_WORDS + 50000;
	struct elf_unwind_row *rows = calloc(n, sizeof(*rows));
	struct cpu_table t = {0};

	assert_non_null(rows);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x401007 + i,
						  .rule = sp_rule((int32_t)(8 + i % 1000))};
	assert_int_equal(add(f, rows, n, &t), 0);
	assert_true(t.n_pieces >= 2);
	for (size_t i = 0; i < n; i += 61)
		assert_rule(lookup(f, &t, 0x401007 + i), ELF_UNWIND_SP, (int32_t)(8 + i % 1000));
	cpu_tables_remove(f->tables, &t);
	free(rows);
}

/* How many there are. */
static size_t chunks(struct fixture *f)
{
	size_t n = 0;

	for (uint32_t i = 0; i < CPU_SAMPLER_CHUNKS; i++)
		n += cpu_tables_chunk(f->tables, i) != NULL;
	return n;
}

static void removed_tables_leave_room_for_others(void **state)
{
	struct fixture *f = *state;
	const size_t n = 200000; /* not quite a chunk */
	struct elf_unwind_row *rows = calloc(n, sizeof(*rows));

	assert_non_null(rows);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x1000 + i,
						  .rule = sp_rule((int32_t)(8 + 8 * (i % 2)))};
	for (size_t i = 0; i < 4 * CPU_SAMPLER_CHUNKS; i++) {
		struct cpu_table t = {0};

		assert_int_equal(add(f, rows, n, &t), 0);
		cpu_tables_remove(f->tables, &t);
	}
	assert_in_range(chunks(f), 1, 2);
	free(rows);
}

/* Every byte has a row. */
static struct elf_unwind_row *dense_rows(size_t n)
{
	struct elf_unwind_row *rows = calloc(n, sizeof(*rows));

	assert_non_null(rows);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x1000 + i,
						  .rule = sp_rule((int32_t)(8 + 8 * (i % 2)))};
	return rows;
}

/* As many tables of almost a chunk as the user may have. */
static size_t add_all(struct fixture *f, uid_t uid, struct cpu_table tables[CPU_SAMPLER_CHUNKS])
{
	const size_t n = 250000;
	_cleanup_free_ struct elf_unwind_row *rows = dense_rows(n);
	size_t added = 0;
	int r = 0;

	while (added < CPU_SAMPLER_CHUNKS) {
		r = add_of(f, uid, rows, n, &tables[added]);
		if (r < 0)
			break;
		added++;
	}
	assert_int_equal(r, -EDQUOT);
	return added;
}

static void remove_all(struct fixture *f, struct cpu_table *tables, size_t n)
{
	for (size_t i = 0; i < n; i++)
		cpu_tables_remove(f->tables, &tables[i]);
}

static void tables_refuse_past_a_share_and_give_chunks_back(void **state)
{
	struct fixture *f = *state;
	struct cpu_table tables[CPU_SAMPLER_CHUNKS] = {0};

	for (int i = 0; i < 2; i++) {
		size_t n = add_all(f, 0, tables);

		/* It may be root in a container. */
		assert_in_range(n, CPU_SAMPLER_CHUNKS / 2 - 2, CPU_SAMPLER_CHUNKS / 2 + 2);
		assert_int_equal(chunks(f), n);
		remove_all(f, tables, n);
		cpu_tables_trim(f->tables);
		assert_int_equal(chunks(f), 1);
	}
}

static void a_user_cannot_take_all_rows(void **state)
{
	struct fixture *f = *state;
	struct cpu_table tables[3][CPU_SAMPLER_CHUNKS] = {0};
	size_t n[3];

	n[0] = add_all(f, USER, tables[0]);
	assert_in_range(n[0], CPU_SAMPLER_CHUNKS / 4, CPU_SAMPLER_CHUNKS / 2);
	assert_true(cpu_tables_are_short(f->tables, USER));
	assert_false(cpu_tables_are_short(f->tables, OTHER));
	n[1] = add_all(f, OTHER, tables[1]);
	assert_in_range(n[1], n[0] / 4, n[0]);
	n[2] = add_all(f, 0, tables[2]);
	assert_in_range(n[2], n[0] / 4, n[0]);
	for (size_t i = 0; i < 3; i++)
		remove_all(f, tables[i], n[i]);
}

/* Half of each chunk is taken, so that none is left whole. */
static void table_is_laid_out_in_what_small_places_are_left(void **state)
{
	struct fixture *f = *state;
	const size_t n = 135000, large = 250000;
	_cleanup_free_ struct elf_unwind_row *rows = dense_rows(large);
	struct cpu_table tables[CPU_SAMPLER_CHUNKS] = {0}, t = {0};

	for (uint32_t i = 0; i < CPU_SAMPLER_CHUNKS; i++)
		assert_int_equal(add_of(f, USER + i, rows, n, &tables[i]), 0);
	assert_int_equal(chunks(f), CPU_SAMPLER_CHUNKS);
	assert_int_equal(add(f, rows, large, &t), 0);
	assert_true(t.n_pieces > 2);
	for (size_t i = 0; i < large; i += 61)
		assert_rule(lookup(f, &t, 0x1000 + i), ELF_UNWIND_SP, (int32_t)(8 + 8 * (i % 2)));
	cpu_tables_remove(f->tables, &t);
	remove_all(f, tables, CPU_SAMPLER_CHUNKS);
}

static void forged_rows_are_refused(void **state)
{
	struct fixture *f = *state;
	struct cpu_table t = {0};
	const struct elf_unwind_row wide[] = {{.vaddr = 0x1000, .rule = sp_rule(8)},
					      {.vaddr = UINT64_MAX - 1, .rule = sp_rule(16)}};
	const struct elf_unwind_row unsorted[] = {{.vaddr = 0x2000, .rule = sp_rule(8)},
						  {.vaddr = 0x1000, .rule = sp_rule(16)}};

	assert_int_equal(add(f, wide, 2, &t), -E2BIG);
	assert_int_equal(add(f, unsorted, 2, &t), -EBADMSG);
	assert_int_equal(add(f, wide, 0, &t), -ENOENT);
	assert_null(t.pieces);
}

static void one_file_cannot_use_up_all_rules(void **state)
{
	struct fixture *f = *state;
	struct elf_unwind_row *rows = calloc(CPU_SAMPLER_RULES, sizeof(*rows));
	const struct elf_unwind_row honest[] = {{.vaddr = 0x1000, .rule = sp_rule(-8)}};
	struct cpu_table t = {0};

	assert_non_null(rows);
	for (size_t i = 0; i < CPU_SAMPLER_RULES; i++)
		rows[i] = (struct elf_unwind_row){.vaddr = 0x1000 + i,
						  .rule = sp_rule(-(int32_t)i - 16)};
	for (int i = 0; i < 8; i++)
		assert_int_equal(add(f, rows, CPU_SAMPLER_RULES, &t), -E2BIG);
	assert_int_equal(add(f, honest, 1, &t), 0);
	assert_rule(lookup(f, &t, 0x1000), ELF_UNWIND_SP, -8);
	cpu_tables_remove(f->tables, &t);
	free(rows);
}

static void rules_are_shared_and_their_numbers_used_again(void **state)
{
	struct elf_unwind_rule *shared = calloc(CPU_SAMPLER_RULES, sizeof(*shared));
	_cleanup_(cpu_rules_freep) struct cpu_rules *rules = cpu_rules_new(shared);
	struct elf_unwind_rule a = sp_rule(8), b = sp_rule(16), c = sp_rule(24), none = {0};
	uint16_t n[4];

	(void)state;
	assert_non_null(rules);
	assert_int_equal(cpu_rules_take(rules, 0, &a, &n[0]), 0);
	assert_int_equal(cpu_rules_take(rules, 0, &b, &n[1]), 0);
	assert_int_equal(cpu_rules_take(rules, 0, &a, &n[2]), 0);
	assert_int_equal(n[0], n[2]);
	assert_int_not_equal(n[0], n[1]);
	/* In use until the last user gives it back, and then anybody's. */
	cpu_rules_give(rules, n[0]);
	assert_rule(shared[n[2]], ELF_UNWIND_SP, 8);
	assert_int_equal(cpu_rules_take(rules, 0, &c, &n[3]), 0);
	assert_int_not_equal(n[3], n[2]);
	cpu_rules_give(rules, n[3]);
	cpu_rules_give(rules, n[2]);
	assert_int_equal(cpu_rules_take(rules, 0, &c, &n[3]), 0);
	assert_int_equal(n[3], n[2]);
	assert_rule(shared[n[3]], ELF_UNWIND_SP, 24);
	cpu_rules_give(rules, n[3]);
	assert_int_equal(cpu_rules_take(rules, 0, &none, &n[0]), 0);
	assert_int_equal(n[0], 0);
	free(shared);
}

/* As many as the user may have, all different. */
static uint32_t take_rules(struct cpu_rules *rules, uid_t uid, uint16_t *ret_last)
{
	uint32_t n = 0;
	int r = 0;

	while (n < CPU_SAMPLER_RULES) {
		struct elf_unwind_rule rule = sp_rule((int32_t)(uid << 16 | n));

		r = cpu_rules_take(rules, uid, &rule, ret_last);
		if (r < 0)
			break;
		n++;
	}
	assert_int_equal(r, -EDQUOT);
	return n;
}

static void a_user_cannot_take_all_rules(void **state)
{
	struct elf_unwind_rule *shared = calloc(CPU_SAMPLER_RULES, sizeof(*shared));
	_cleanup_(cpu_rules_freep) struct cpu_rules *rules = cpu_rules_new(shared);
	struct elf_unwind_rule known = sp_rule(USER << 16);
	uint16_t last, number;
	uint32_t n;

	(void)state;
	assert_non_null(rules);
	n = take_rules(rules, USER, &last);
	assert_in_range(n, CPU_SAMPLER_RULES / 4, CPU_SAMPLER_RULES / 2);
	assert_true(cpu_rules_are_short(rules, USER));
	/* One that is there costs nothing; one given back may be taken again. */
	assert_int_equal(cpu_rules_take(rules, USER, &known, &number), 0);
	cpu_rules_give(rules, last);
	known = sp_rule(-8);
	assert_int_equal(cpu_rules_take(rules, USER, &known, &number), 0);
	assert_in_range(take_rules(rules, OTHER, &last), n / 4, n);
	assert_in_range(take_rules(rules, 0, &last), n / 4, CPU_SAMPLER_RULES);
	free(shared);
}

static void ranges_join_what_comes_back(void **state)
{
	struct cpu_ranges r = {0};
	uint32_t a, b, c, d;

	(void)state;
	assert_int_equal(cpu_ranges_take(&r, 1, 0, &a), -ENOSPC);
	assert_int_equal(cpu_ranges_give(&r, 0, 100), 0);
	assert_int_equal(cpu_ranges_take(&r, 30, 0, &a), 0);
	assert_int_equal(cpu_ranges_take(&r, 30, 0, &b), 0);
	assert_int_equal(cpu_ranges_take(&r, 30, 0, &c), 0);
	assert_int_equal(cpu_ranges_take(&r, 30, 0, &d), -ENOSPC);
	assert_int_equal(cpu_ranges_give(&r, a, 30), 0);
	assert_int_equal(cpu_ranges_give(&r, c, 30), 0);
	assert_int_equal(cpu_ranges_take(&r, 50, 0, &d), -ENOSPC);
	assert_int_equal(cpu_ranges_give(&r, b, 30), 0);
	assert_int_equal(r.len, 1);
	assert_int_equal(cpu_ranges_take(&r, 100, 0, &d), 0);
	cpu_ranges_release(&r);
}

static void ranges_keep_to_their_boundary(void **state)
{
	struct cpu_ranges r = {0};
	uint32_t a, b;

	(void)state;
	assert_int_equal(cpu_ranges_give(&r, 0, 64), 0);
	assert_int_equal(cpu_ranges_take(&r, 10, 16, &a), 0);
	assert_int_equal(cpu_ranges_take(&r, 10, 16, &b), 0);
	assert_int_equal(a, 0);
	assert_int_equal(b, 16);
	/* What was jumped over is still there. */
	assert_int_equal(cpu_ranges_take(&r, 6, 16, &a), 0);
	assert_int_equal(a, 10);
	assert_int_equal(cpu_ranges_take(&r, 17, 16, &a), -ENOSPC);
	assert_int_equal(cpu_ranges_take_at(&r, 32, 16), 0);
	assert_int_equal(cpu_ranges_take_at(&r, 40, 16), -ENOSPC);
	cpu_ranges_release(&r);
}

static void join_prefers_the_first_where_both_know(void **state)
{
	struct elf_unwind_row a[] = {{.vaddr = 0x100, .rule = sp_rule(8)},
				     {.vaddr = 0x200, .rule = {.cfa = ELF_UNWIND_NONE}},
				     {.vaddr = 0x300, .rule = sp_rule(24)}};
	struct elf_unwind_row b[] = {{.vaddr = 0x80, .rule = sp_rule(80)},
				     {.vaddr = 0x180, .rule = sp_rule(88)},
				     {.vaddr = 0x280, .rule = {.cfa = ELF_UNWIND_NONE}}};
	struct elf_unwind_table first = {.rows = a, .n_rows = 3}, both = {0};
	struct cpu_file_join join = {.first = &first};

	(void)state;
	assert_int_equal(cpu_file_join_rows(&join, b, 1), 0);
	assert_int_equal(cpu_file_join_rows(&join, b + 1, 2), 0);
	assert_int_equal(cpu_file_join_finish(&join), 0);
	elf_unwind_builder_finish(&join.joined, &both);
	assert_rule(unwind_table_lookup(&both, 0x90), ELF_UNWIND_SP, 80);
	assert_rule(unwind_table_lookup(&both, 0x1c0), ELF_UNWIND_SP, 8);
	assert_rule(unwind_table_lookup(&both, 0x210), ELF_UNWIND_SP, 88);
	assert_rule(unwind_table_lookup(&both, 0x290), ELF_UNWIND_NONE, 0);
	assert_rule(unwind_table_lookup(&both, 0x310), ELF_UNWIND_SP, 24);
	elf_unwind_table_release(&both);
}

struct kept_rows {
	struct elf_unwind_row *rows;
	size_t n;
	size_t n_calls;
	size_t max_calls; /* then it refuses */
};

static int keep_rows(void *context, const struct elf_unwind_row *rows, size_t n)
{
	struct kept_rows *k = context;

	if (++k->n_calls > k->max_calls)
		return -ENOSPC;
	if (!n)
		return 0;
	k->rows = reallocarray(k->rows, k->n + n, sizeof(*rows));
	assert_non_null(k->rows);
	memcpy(k->rows + k->n, rows, n * sizeof(*rows));
	k->n += n;
	return 0;
}

/* Rows with what a builder leaves out: the same address again, the same rule again. */
static int build_some(struct elf_unwind_builder *b)
{
	uint64_t vaddr = 0x1000, seed = 1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < 50000; i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		vaddr += seed >> 62;
		r = elf_unwind_builder_row(b, vaddr, sp_rule((int32_t)(seed >> 40 & 3)));
	}
	return r;
}

static void rows_that_pass_by_are_those_of_a_whole_table(void **state)
{
	struct kept_rows kept = {.max_calls = SIZE_MAX};
	const struct elf_unwind_sink sink = {.rows = keep_rows, .context = &kept};
	struct elf_unwind_builder passing = {.sink = &sink}, whole = {0};

	(void)state;
	assert_int_equal(build_some(&whole), 0);
	assert_int_equal(build_some(&passing), 0);
	assert_int_equal(elf_unwind_builder_drain(&passing), 0);
	assert_true(kept.n_calls > 2);
	assert_int_equal(kept.n, whole.table.n_rows);
	assert_memory_equal(kept.rows, whole.table.rows, kept.n * sizeof(*kept.rows));
	elf_unwind_builder_release(&whole);
	elf_unwind_builder_release(&passing);
	free(kept.rows);
}

static void a_file_streams_the_rows_that_it_compiles_to(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct kept_rows kept = {.max_calls = SIZE_MAX};
	const struct elf_unwind_sink sink = {.rows = keep_rows, .context = &kept};
	struct elf_unwind_table whole = {0};

	(void)state;
	assert_int_equal(elf_image_open_fd(fd, &image, NULL), 0);
	assert_int_equal(elf_unwind_compile(image, &whole, NULL), 0);
	assert_int_equal(elf_unwind_stream(image, NULL, &sink, NULL), 0);
	assert_int_equal(kept.n, whole.n_rows);
	assert_memory_equal(kept.rows, whole.rows, kept.n * sizeof(*kept.rows));
	/* Who takes them no more is not asked again. */
	kept.n_calls = kept.max_calls = 0;
	assert_int_equal(elf_unwind_stream(image, NULL, &sink, NULL), -ENOSPC);
	assert_int_equal(kept.n_calls, 1);
	elf_unwind_table_release(&whole);
	free(kept.rows);
}

/* The rule at an address, of rows. */
static struct elf_unwind_rule rule_in(const struct kept_rows *kept, uint64_t vaddr)
{
	struct elf_unwind_rule rule = {0};

	for (size_t i = 0; i < kept->n && kept->rows[i].vaddr <= vaddr; i++)
		rule = kept->rows[i].rule;
	return rule;
}

static void check_part(struct cpu_file *file, const struct elf_unwind_table *whole,
		       struct elf_unwind_range range)
{
	struct kept_rows kept = {.max_calls = SIZE_MAX};
	const struct elf_unwind_sink sink = {.rows = keep_rows, .context = &kept};

	assert_int_equal(cpu_file_load_rows(file, &range, &sink), 0);
	for (size_t i = 0; i < kept.n; i++)
		assert_in_range(kept.rows[i].vaddr, range.from, range.to - 1);
	for (uint64_t at = range.from; at < range.to; at += 13) {
		struct elf_unwind_rule a = rule_in(&kept, at), b = unwind_table_lookup(whole, at);

		assert_memory_equal(&a, &b, sizeof(a));
	}
	free(kept.rows);
}

/* Wherever they begin, also within a function. */
static void parts_of_a_file_have_the_rows_of_the_whole(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct cpu_file file = {.fd = fd};
	struct elf_unwind_table whole = {0};
	uint64_t lo, hi;

	(void)state;
	assert_int_equal(elf_image_open_fd(fd, &image, NULL), 0);
	assert_int_equal(elf_unwind_compile(image, &whole, NULL), 0);
	lo = whole.rows[0].vaddr;
	hi = whole.rows[whole.n_rows - 1].vaddr;
	for (uint64_t i = 0; i < 8; i++) {
		uint64_t from = lo + (hi - lo) / 8 * i + i;

		check_part(&file, &whole, (struct elf_unwind_range){from, from + 20011});
	}
	check_part(&file, &whole, (struct elf_unwind_range){0, lo + 4097});
	check_part(&file, &whole, (struct elf_unwind_range){hi - 4097, hi + 4096});
	elf_unwind_table_release(&whole);
}

static void clip_passes_on_what_is_inside(void **state)
{
	const struct elf_unwind_row rows[] = {{.vaddr = 0x100, .rule = sp_rule(8)},
					      {.vaddr = 0x200, .rule = sp_rule(16)},
					      {.vaddr = 0x300, .rule = sp_rule(24)},
					      {.vaddr = 0x400, .rule = sp_rule(32)}};
	static const struct {
		struct elf_unwind_range range;
		size_t n;
		uint64_t first;
		int32_t offset;
	} cases[] = {
		{{0x180, 0x380}, 3, 0x180, 8},	{{0x200, 0x300}, 1, 0x200, 16},
		{{0x210, 0x220}, 1, 0x210, 16}, {{0x500, 0x600}, 1, 0x500, 32},
		{{0x10, 0x20}, 0, 0, 0},	{{0, 0x101}, 1, 0x100, 8},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t batch = 1; batch <= ARRAY_SIZE(rows); batch++) {
			struct kept_rows kept = {.max_calls = SIZE_MAX};
			const struct elf_unwind_sink sink = {.rows = keep_rows, .context = &kept};
			struct cpu_file_clip clip = {.range = &cases[i].range, .sink = &sink};

			for (size_t at = 0; at < ARRAY_SIZE(rows); at += batch)
				assert_int_equal(
					cpu_file_clip_rows(&clip, rows + at,
							   MIN(batch, ARRAY_SIZE(rows) - at)),
					0);
			assert_int_equal(cpu_file_clip_rows(&clip, NULL, 0), 0);
			assert_int_equal(cpu_file_clip_finish(&clip), 0);
			assert_int_equal(kept.n, cases[i].n);
			if (kept.n) {
				assert_int_equal(kept.rows[0].vaddr, cases[i].first);
				assert_int_equal(kept.rows[0].rule.cfa_off, cases[i].offset);
			}
			free(kept.rows);
		}
}

static int copy_of_self(void)
{
	_cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = memfd_create("copy", MFD_CLOEXEC);
	static char block[1 << 16];
	ssize_t n;

	assert_true(from >= 0 && to >= 0);
	while ((n = read(from, block, sizeof(block))) > 0)
		assert_int_equal(write(to, block, (size_t)n), n);
	return to;
}

static void change_unwind_information(int fd)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	const struct elf_section *frames;
	uint8_t byte;

	assert_int_equal(elf_image_open_fd(fd, &image, NULL), 0);
	frames = elf_image_section(image, ".eh_frame");
	assert_non_null(frames);
	assert_int_equal(pread(fd, &byte, 1, (off_t)(frames->offset + frames->size / 2)), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)(frames->offset + frames->size / 2)), 1);
}

static bool no_room(void *context, uid_t uid, int why)
{
	(void)context;
	(void)uid;
	(void)why;
	return false;
}

static void count_pause(void *context)
{
	++*(size_t *)context;
}

static void others_are_heard_while_a_table_is_made(void **state)
{
	struct fixture *f = *state;
	struct cpu_file_tables shared = {0};
	struct cpu_file file = {.fd = copy_of_self()};
	struct cpu_file_table *table = NULL;
	size_t n = 0;
	const struct cpu_pause pause = {.call = count_pause, .context = &n};
	const struct cpu_file_loading loading = {.make_room = no_room, .pause = &pause};

	assert_int_equal(cpu_file_tables_take(&shared, f->tables, &file, NULL, &loading, &table),
			 0);
	assert_true(n > 0);
	cpu_file_tables_give(&shared, f->tables, table);
	(void)close(file.fd);
}

struct asking {
	struct cpu_files *files;
	uint32_t id;
	size_t n;
};

static void ask_again(void *context)
{
	struct asking *a = context;

	a->n++;
	cpu_files_want(a->files, a->id);
}

static void file_that_is_asked_for_while_it_is_loaded_is_loaded_once(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ struct cpu_sampler_file *shared = calloc(CPU_FILES_MAX, sizeof(*shared));
	_cleanup_(cpu_files_freep) struct cpu_files *files = NULL;
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct interp_layout rows[INTERP_LAYOUTS];
	struct interp_layouts layouts = {.rows = rows};
	struct asking asking = {.id = CPU_FILE_NONE};
	const struct cpu_pause pause = {.call = ask_again, .context = &asking};
	uint64_t bias;

	assert_non_null(shared);
	assert_int_equal(cpu_files_new(shared, f->tables, &layouts, &files, NULL), 0);
	assert_int_equal(proc_maps_read(getpid(), &maps, NULL), 0);
	for (size_t i = 0; i < maps.len && asking.id == CPU_FILE_NONE; i++)
		if (maps.maps[i].flags & PROC_MAP_EXEC)
			assert_int_equal(cpu_files_open(files, getpid(), 0, &maps.maps[i],
							&asking.id, &bias),
					 0);
	asking.files = files;
	cpu_files_want(files, asking.id);
	assert_true(cpu_files_load_next(files, &pause));
	assert_true(asking.n > 0);
	assert_false(cpu_files_is_wanted(files));
	assert_int_equal(shared[asking.id].state, CPU_SAMPLER_FILE_TABLE);
}

static void only_large_files_have_parts(void **state)
{
	static const struct {
		uint64_t mb;
		uint32_t parts;
	} cases[] = {{1, 0}, {64, 0}, {65, 3}, {285, 9}, {2048, 64}, {2049, 0}, {1 << 20, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cpu_file_headers h = {
			.n_segments = 1,
			.segments = {{.vaddr = 0x401000, .size = cases[i].mb << 20}}};
		uint64_t first = 0;

		assert_int_equal(cpu_file_headers_parts(&h, &first), cases[i].parts);
		assert_int_equal(first, cases[i].parts ? 0x401000 >> CPU_SAMPLER_PAGE_BITS : 0);
		h.segments[0].size = UINT64_MAX;
		assert_int_equal(cpu_file_headers_parts(&h, &first), 0);
	}
}

static void count_closing(void *context, const struct cpu_file *file)
{
	assert_true(file->fd >= 0);
	++*(size_t *)context;
}

/* Whoever wants to unmount its file system must not wait for us. */
static void unused_file_is_closed_and_keeps_its_table(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ struct cpu_sampler_file *shared = calloc(CPU_FILES_MAX, sizeof(*shared));
	_cleanup_(cpu_files_freep) struct cpu_files *files = NULL;
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct interp_layout rows[INTERP_LAYOUTS];
	struct interp_layouts layouts = {.rows = rows};
	const struct proc_map *map = NULL;
	uint32_t id, again;
	uint64_t bias;
	size_t n = 0;

	assert_non_null(shared);
	assert_int_equal(cpu_files_new(shared, f->tables, &layouts, &files, NULL), 0);
	cpu_files_on_close(files, count_closing, &n);
	assert_int_equal(proc_maps_read(getpid(), &maps, NULL), 0);
	for (size_t i = 0; i < maps.len && !map; i++)
		if (maps.maps[i].flags & PROC_MAP_EXEC)
			map = &maps.maps[i];
	assert_non_null(map);
	assert_int_equal(cpu_files_open(files, getpid(), 0, map, &id, &bias), 0);
	cpu_files_want(files, id);
	assert_true(cpu_files_load_next(files, NULL));
	cpu_files_sweep(files, clock_mono_ns());
	assert_true(cpu_files_get(files, id, UINT32_MAX)->fd >= 0);
	cpu_files_unref(files, id);
	cpu_files_sweep(files, clock_mono_ns());
	assert_int_equal(cpu_files_get(files, id, UINT32_MAX)->fd, -1);
	assert_int_equal(n, 1);
	/* What was asked for too late is not looked for. */
	cpu_files_want(files, id);
	assert_false(cpu_files_is_wanted(files));
	/* The next process finds it as it was. */
	assert_int_equal(cpu_files_open(files, getpid(), 0, map, &again, &bias), 0);
	assert_int_equal(again, id);
	assert_true(cpu_files_get(files, id, UINT32_MAX)->fd >= 0);
	assert_int_equal(shared[id].state, CPU_SAMPLER_FILE_TABLE);
	cpu_files_unref(files, id);
	cpu_files_sweep(files, clock_mono_ns() + 61 * NS_PER_SEC);
	assert_null(cpu_files_get(files, id, UINT32_MAX));
	assert_int_equal(n, 2);
}

static void only_files_of_equal_content_share_a_table(void **state)
{
	struct fixture *f = *state;
	struct cpu_file_tables shared = {0};
	struct cpu_file files[3] = {0};
	struct cpu_file_table *tables[3] = {0};
	struct cpu_file_loading loading = {.make_room = no_room};

	for (size_t i = 0; i < 3; i++) {
		files[i].fd = copy_of_self();
		/* The third one only says so. */
		(void)strcpy(files[i].build_id, "0123456789abcdef");
	}
	change_unwind_information(files[2].fd);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(cpu_file_tables_take(&shared, f->tables, &files[i], NULL, &loading,
						      &tables[i]),
				 0);
	assert_ptr_equal(tables[0], tables[1]);
	assert_ptr_not_equal(tables[0], tables[2]);
	cpu_file_tables_give(&shared, f->tables, tables[0]);
	assert_true(tables[1]->table.n_pages > 0);
	cpu_file_tables_give(&shared, f->tables, tables[1]);
	cpu_file_tables_give(&shared, f->tables, tables[2]);
	assert_null(shared.first);
	for (size_t i = 0; i < 3; i++)
		(void)close(files[i].fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(table_gives_the_rule_of_each_address, setup,
						teardown),
		cmocka_unit_test_setup_teardown(rules_are_the_same_whatever_their_form, setup,
						teardown),
		cmocka_unit_test_setup_teardown(table_joins_functions_over_padding, setup,
						teardown),
		cmocka_unit_test_setup_teardown(table_larger_than_a_chunk_is_whole, setup,
						teardown),
		cmocka_unit_test_setup_teardown(removed_tables_leave_room_for_others, setup,
						teardown),
		cmocka_unit_test_setup_teardown(tables_refuse_past_a_share_and_give_chunks_back,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_user_cannot_take_all_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(table_is_laid_out_in_what_small_places_are_left,
						setup, teardown),
		cmocka_unit_test_setup_teardown(forged_rows_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(one_file_cannot_use_up_all_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(
			file_that_is_asked_for_while_it_is_loaded_is_loaded_once, setup, teardown),
		cmocka_unit_test_setup_teardown(others_are_heard_while_a_table_is_made, setup,
						teardown),
		cmocka_unit_test(rows_that_pass_by_are_those_of_a_whole_table),
		cmocka_unit_test(a_file_streams_the_rows_that_it_compiles_to),
		cmocka_unit_test(parts_of_a_file_have_the_rows_of_the_whole),
		cmocka_unit_test(clip_passes_on_what_is_inside),
		cmocka_unit_test(only_large_files_have_parts),
		cmocka_unit_test_setup_teardown(unused_file_is_closed_and_keeps_its_table, setup,
						teardown),
		cmocka_unit_test_setup_teardown(only_files_of_equal_content_share_a_table, setup,
						teardown),
		cmocka_unit_test(a_user_cannot_take_all_rules),
		cmocka_unit_test(rules_are_shared_and_their_numbers_used_again),
		cmocka_unit_test(ranges_join_what_comes_back),
		cmocka_unit_test(ranges_keep_to_their_boundary),
		cmocka_unit_test(join_prefers_the_first_where_both_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
