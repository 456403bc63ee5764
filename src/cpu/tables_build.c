/* src/cpu/tables_build.c: see tables_build.h. */
#include "cpu/tables_build.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Between functions there is padding, which nothing runs through: leaving it out saves a row of
 * two. Longer gaps are text without unwind information.
 */
#define BUILD_PADDING 16

/* Real files have hundreds; one that wants more must not leave the others without. */
#define BUILD_RULES_MAX (SAMPLER_RULES / 4)

static int build_append(struct table_build *b, uint32_t word)
{
	if (b->n_words == b->cap_words) {
		size_t cap = b->cap_words ? b->cap_words * 2 : 1024;
		uint32_t *grown;

		if (cap > (size_t)SAMPLER_CHUNKS * SAMPLER_CHUNK_WORDS)
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

/* The number of a rule; one use of it is held however often it occurs. */
static int build_rule(struct table_build *b, struct cpu_rules *rules,
		      const struct unwind_rule *rule, uint16_t *ret)
{
	uint16_t number;
	int r = cpu_rules_take(rules, rule, &number);

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

struct cursor {
	const struct unwind_row *rows;
	size_t n;
	size_t next;
	uint16_t rule; /* that holds before the next row */
};

static int build_page(struct table_build *b, struct cpu_rules *rules, struct cursor *c,
		      uint64_t start)
{
	struct table_page *page = &b->pages[b->n_pages++];
	uint16_t written = c->rule;
	int r;

	page->first = (uint32_t)b->n_words;
	/* Every page begins with a row, so that it can be searched alone. */
	r = build_append(b, SAMPLER_ROW(0, c->rule));
	for (; r >= 0 && c->next < c->n; c->next++) {
		const struct unwind_row *row = &c->rows[c->next];
		uint64_t offset = row->vaddr - start;

		if (offset >= SAMPLER_PAGE_SIZE)
			break;
		if (row->rule.cfa == UNWIND_NONE && c->next + 1 < c->n &&
		    row[1].vaddr - row->vaddr < BUILD_PADDING)
			continue;
		r = build_rule(b, rules, &row->rule, &c->rule);
		if (r < 0)
			break;
		if (offset == 0)
			b->words[b->n_words - 1] = SAMPLER_ROW(0, c->rule);
		else if (c->rule != written)
			r = build_append(b, SAMPLER_ROW(offset, c->rule));
		written = c->rule;
	}
	page->n = (uint32_t)(b->n_words - page->first);
	return r;
}

int table_build(struct table_build *b, struct cpu_rules *rules, const struct unwind_row *rows,
		size_t n_rows, struct err *err)
{
	struct cursor c = {.rows = rows, .n = n_rows};
	uint64_t n_pages;
	int r = 0;

	if (!n_rows)
		return err_set(err, -ENOENT, "there are no unwind rows");
	b->first_page = rows[0].vaddr >> SAMPLER_PAGE_BITS;
	n_pages = (rows[n_rows - 1].vaddr >> SAMPLER_PAGE_BITS) - b->first_page + 1;
	for (size_t i = 1; i < n_rows; i++)
		if (rows[i].vaddr <= rows[i - 1].vaddr)
			return err_set(err, -EBADMSG, "unwind rows are not in order");
	if (n_pages > TABLE_PAGES_MAX)
		return err_set(err, -E2BIG, "unwind rows span more than %u MB of text",
			       TABLE_PAGES_MAX >> (20 - SAMPLER_PAGE_BITS));
	b->pages = calloc(n_pages, sizeof(*b->pages));
	if (!b->pages)
		return err_oom(err);
	for (uint64_t i = 0; i < n_pages && r >= 0; i++)
		r = build_page(b, rules, &c, (b->first_page + i) << SAMPLER_PAGE_BITS);
	if (r == -ENOSPC)
		return err_set(err, r, "too many different unwind rules");
	if (r < 0)
		return err_set(err, r, "the unwind table is too large");
	return 0;
}

void table_build_release(struct table_build *b, struct cpu_rules *rules)
{
	for (size_t i = 0; i < b->n_rules; i++)
		cpu_rules_give(rules, b->rules[i]);
	free(b->rules);
	free(b->pages);
	free(b->words);
}
