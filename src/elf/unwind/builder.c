/* src/elf/unwind/builder.c: see builder.h. */
#include "elf/unwind/builder.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The largest browsers have half as many: 64 MB. */
#define UNWIND_MAX_ROWS ((size_t)4 << 20)
#define UNWIND_MAX_STARTS ((size_t)1 << 20)
#define UNWIND_FIRST_CAP 1024
/* Rows passed to a sink at once. The last two may still change. */
#define UNWIND_BATCH ((size_t)4096)
#define UNWIND_OPEN 2

static bool same_rule(struct elf_unwind_rule a, struct elf_unwind_rule b)
{
	uint64_t x, y;

	static_assert(sizeof(a) == sizeof(x), "a rule is compared as one number");
	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	return x == y;
}

int elf_unwind_grow(void *array, size_t *cap, size_t max, size_t size)
{
	size_t wanted = *cap ? *cap * 2 : UNWIND_FIRST_CAP;
	void *grown;

	if (*cap >= max)
		return -E2BIG;
	grown = reallocarray(*(void **)array, wanted, size);
	if (!grown)
		return -ENOMEM;
	*(void **)array = grown;
	*cap = wanted;
	return 0;
}

static int sink_rows(struct elf_unwind_builder *b, size_t n)
{
	struct elf_unwind_table *t = &b->table;
	int r = b->sink->rows(b->sink->context, t->rows, n);

	if (r < 0)
		return r;
	memmove(t->rows, t->rows + n, (t->n_rows - n) * sizeof(*t->rows));
	t->n_rows -= n;
	b->n_sunk += n;
	return 0;
}

int elf_unwind_builder_drain(struct elf_unwind_builder *b)
{
	return b->sink && b->table.n_rows ? sink_rows(b, b->table.n_rows) : 0;
}

static int make_room(struct elf_unwind_builder *b)
{
	struct elf_unwind_table *t = &b->table;
	int r = 0;

	if (b->n_sunk + t->n_rows >= UNWIND_MAX_ROWS)
		return -E2BIG;
	if (b->sink && t->n_rows == UNWIND_BATCH)
		r = sink_rows(b, t->n_rows - UNWIND_OPEN);
	if (r == 0 && t->n_rows == b->rows_cap)
		r = elf_unwind_grow(&t->rows, &b->rows_cap, UNWIND_MAX_ROWS, sizeof(*t->rows));
	return r;
}

int elf_unwind_builder_row(struct elf_unwind_builder *b, uint64_t vaddr,
			   struct elf_unwind_rule rule)
{
	struct elf_unwind_table *t = &b->table;
	int r;

	if (t->n_rows && t->rows[t->n_rows - 1].vaddr == vaddr)
		t->n_rows--;
	assert(!t->n_rows || t->rows[t->n_rows - 1].vaddr < vaddr);
	if (t->n_rows ? same_rule(t->rows[t->n_rows - 1].rule, rule) : rule.cfa == ELF_UNWIND_NONE)
		return 0;
	r = make_room(b);
	if (r < 0) {
		b->error = r;
		return r;
	}
	t->rows[t->n_rows++] = (struct elf_unwind_row){.vaddr = vaddr, .rule = rule};
	return 0;
}

int elf_unwind_builder_start(struct elf_unwind_builder *b, uint64_t vaddr)
{
	struct elf_unwind_table *t = &b->table;

	if (b->sink) {
		t->n_starts++;
		return 0;
	}
	if (t->n_starts == b->starts_cap) {
		int r = elf_unwind_grow(&t->starts, &b->starts_cap, UNWIND_MAX_STARTS,
					sizeof(*t->starts));

		if (r < 0)
			return r;
	}
	t->starts[t->n_starts++] = vaddr;
	return 0;
}

/* Frees the slack left by doubling; on failure the array stays as it is. */
static void *shrink(void *array, size_t n, size_t size)
{
	void *small = n ? reallocarray(array, n, size) : NULL;

	return small ? small : array;
}

void elf_unwind_builder_finish(struct elf_unwind_builder *b, struct elf_unwind_table *ret_table)
{
	*ret_table = b->table;
	ret_table->rows = shrink(b->table.rows, b->table.n_rows, sizeof(*ret_table->rows));
	ret_table->starts = shrink(b->table.starts, b->table.n_starts, sizeof(*ret_table->starts));
	*b = (struct elf_unwind_builder){0};
}

void elf_unwind_builder_release(struct elf_unwind_builder *b)
{
	elf_unwind_table_release(&b->table);
	*b = (struct elf_unwind_builder){0};
}
