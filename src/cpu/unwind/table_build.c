/* src/cpu/unwind/table_build.c: see table_build.h. */
#include "cpu/unwind/table_build.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Padding between functions never runs: omitting it saves every other row. Longer gaps are code
 * without unwind information.
 */
#define BUILD_PADDING 16

/* Real files have hundreds; one that needs more must not use up those of others. */
#define BUILD_RULES_MAX (CPU_SAMPLER_RULES / 4)

static int build_append(struct cpu_table_build *b, uint32_t word)
{
	if (b->n_words == b->cap_words) {
		size_t cap = b->cap_words ? b->cap_words * 2 : 1024;
		uint32_t *grown;

		if (cap > (size_t)CPU_SAMPLER_CHUNKS * CPU_SAMPLER_CHUNK_WORDS)
			return -E2BIG;
		grown = realloc(b->words, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		b->words = grown;
		b->cap_words = cap;
	}
	b->words[b->n_words++] = word;
	return 0;
}

/* Whether it fits into its row, and how. */
static bool rule_is_short(const struct elf_unwind_rule *rule, uint16_t *ret)
{
	uint32_t words = (uint32_t)rule->cfa_off / 8, fp = 0;

	if (rule->cfa != ELF_UNWIND_SP || rule->reg || rule->cfa_off < 0 || rule->cfa_off % 8 ||
	    words > 0xfff)
		return false;
	if (rule->fp == ELF_UNWIND_FP_SAVED && rule->fp_off % 8 == 0)
		fp = (uint32_t)(-rule->fp_off / 8 - 1);
	if (rule->fp == ELF_UNWIND_FP_SAVED ? fp < 1 || fp > 7
					    : rule->fp != ELF_UNWIND_FP_SAME || rule->fp_off)
		return false;
	*ret = (uint16_t)(CPU_SAMPLER_RULE_SHORT | fp << 12 | words);
	return true;
}

/* The number of a rule. The table holds one reference, however often the rule occurs. */
static int build_rule(struct cpu_table_build *b, const struct elf_unwind_rule *rule, uint16_t *ret)
{
	struct cpu_rules *rules = b->all;
	uint16_t number;
	int r;

	if (rule_is_short(rule, ret))
		return 0;
	r = cpu_rules_take(rules, b->uid, rule, &number);
	if (r < 0)
		return r;
	*ret = number;
	if (!number)
		return 0;
	if (b->seen[number / 64] >> (number % 64) & 1) {
		cpu_rules_give(rules, number);
		return 0;
	}
	if (b->n_rules == BUILD_RULES_MAX) {
		cpu_rules_give(rules, number);
		return -E2BIG;
	}
	if (b->n_rules == b->cap_rules) {
		size_t cap = b->cap_rules ? b->cap_rules * 2 : 64;
		uint16_t *grown = realloc(b->rules, cap * sizeof(*grown));

		if (!grown) {
			cpu_rules_give(rules, number);
			return -ENOMEM;
		}
		b->rules = grown;
		b->cap_rules = cap;
	}
	b->rules[b->n_rules++] = number;
	b->seen[number / 64] |= 1ULL << (number % 64);
	return 0;
}

/* Every page starts with a row, so that it can be searched alone. */
static int build_page(struct cpu_table_build *b)
{
	if (b->n_pages == CPU_TABLE_PAGES_MAX)
		return -E2BIG;
	if (b->n_pages == b->cap_pages) {
		size_t cap = b->cap_pages ? b->cap_pages * 2 : 64;
		struct cpu_table_page *grown = realloc(b->pages, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		b->pages = grown;
		b->cap_pages = cap;
	}
	b->pages[b->n_pages++] = (struct cpu_table_page){.first = (uint32_t)b->n_words, .n = 1};
	return build_append(b, CPU_SAMPLER_ROW(0, b->rule));
}

/* Adds the last row; next: the address of the one after it. */
static int build_last(struct cpu_table_build *b, uint64_t next)
{
	const struct elf_unwind_row *row = &b->last;
	uint64_t page = (row->vaddr >> CPU_SAMPLER_PAGE_BITS) - b->first_page;
	uint64_t offset = row->vaddr % CPU_SAMPLER_PAGE_SIZE;
	uint16_t before = b->rule;
	int r = 0;

	if (page >= CPU_TABLE_PAGES_MAX)
		return -E2BIG;
	while (r >= 0 && b->n_pages <= page)
		r = build_page(b);
	if (r < 0 || (row->rule.cfa == ELF_UNWIND_NONE && next - row->vaddr < BUILD_PADDING))
		return r;
	r = build_rule(b, &row->rule, &b->rule);
	if (r < 0)
		return r;
	if (offset == 0) {
		b->words[b->n_words - 1] = CPU_SAMPLER_ROW(0, b->rule);
		return 0;
	}
	if (b->rule == before)
		return 0;
	b->pages[page].n++;
	return build_append(b, CPU_SAMPLER_ROW(offset, b->rule));
}

int cpu_table_build_rows(struct cpu_table_build *b, const struct elf_unwind_row *rows,
			 size_t n_rows)
{
	for (size_t i = 0; i < n_rows; i++) {
		int r = 0;

		if (!b->has_last)
			b->first_page = rows[i].vaddr >> CPU_SAMPLER_PAGE_BITS;
		else if (rows[i].vaddr <= b->last.vaddr)
			return -EBADMSG;
		else
			r = build_last(b, rows[i].vaddr);
		if (r < 0)
			return r;
		b->last = rows[i];
		b->has_last = true;
	}
	return 0;
}

int cpu_table_build_finish(struct cpu_table_build *b)
{
	return b->has_last ? build_last(b, UINT64_MAX) : -ENOENT;
}

void cpu_table_build_release(struct cpu_table_build *b)
{
	for (size_t i = 0; i < b->n_rules; i++)
		cpu_rules_give(b->all, b->rules[i]);
	free(b->rules);
	free(b->pages);
	free(b->words);
}
