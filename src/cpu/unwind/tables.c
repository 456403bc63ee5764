/* src/cpu/unwind/tables.c: see tables.h. */
#include "cpu/unwind/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "cpu/unwind/rules.h"
#include "cpu/unwind/shares.h"
#include "cpu/unwind/table_build.h"

/* Allocation unit of tables, in words: 4 kB. */
#define GRAIN_WORDS 1024U
#define CHUNK_GRAINS (CPU_SAMPLER_CHUNK_WORDS / GRAIN_WORDS)
/* At the same time. */
#define CHUNKS_MAPPED_MAX 4

struct chunk {
	bool exists;
	int fd;		 /* -1 without BPF */
	uint32_t *words; /* with BPF, NULL unless mapped: it would count as our memory */
};

struct cpu_tables {
	struct cpu_rules *rules;
	struct cpu_ranges grains;
	struct cpu_shares shares; /* of grains */
	int chunks_fd;
	struct chunk chunks[CPU_SAMPLER_CHUNKS];
	uint32_t n_mapped;
};

int cpu_tables_new(struct elf_unwind_rule *rules, int chunks_fd, struct cpu_tables **ret_tables,
		   struct err *err)
{
	_cleanup_(cpu_tables_freep) struct cpu_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return err_oom(err);
	t->chunks_fd = chunks_fd;
	t->shares.max = CPU_SAMPLER_CHUNKS * CHUNK_GRAINS;
	t->rules = cpu_rules_new(rules);
	if (!t->rules)
		return err_oom(err);
	*ret_tables = TAKE_PTR(t);
	return 0;
}

static void chunk_unmap(struct cpu_tables *t, struct chunk *c)
{
	if (!c->exists || c->fd < 0 || !c->words)
		return;
	munmap(c->words, sizeof(struct cpu_sampler_chunk));
	c->words = NULL;
	t->n_mapped--;
}

static void chunk_release(struct cpu_tables *t, struct chunk *c)
{
	chunk_unmap(t, c);
	if (c->exists && c->fd >= 0)
		close(c->fd);
	free(c->words);
	*c = (struct chunk){0};
}

void cpu_tables_free(struct cpu_tables *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < CPU_SAMPLER_CHUNKS; i++)
		chunk_release(t, &t->chunks[i]);
	cpu_ranges_release(&t->grains);
	cpu_rules_free(t->rules);
	free(t);
}

static int chunk_create(struct cpu_tables *t, uint32_t number)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	struct chunk *c = &t->chunks[number];

	if (t->chunks_fd < 0) {
		c->fd = -1;
		c->words = calloc(CPU_SAMPLER_CHUNK_WORDS, sizeof(*c->words));
		return c->words ? 0 : -ENOMEM;
	}
	c->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_rows", sizeof(uint32_t),
			       sizeof(struct cpu_sampler_chunk), 1, &options);
	if (c->fd < 0)
		return -errno;
	if (bpf_map_update_elem(t->chunks_fd, &number, &c->fd, 0) < 0) {
		int r = -errno;

		close(c->fd);
		return r;
	}
	return 0;
}

static int tables_grow(struct cpu_tables *t)
{
	for (uint32_t i = 0; i < CPU_SAMPLER_CHUNKS; i++) {
		int r;

		if (t->chunks[i].exists)
			continue;
		r = chunk_create(t, i);
		if (r < 0)
			return r;
		t->chunks[i].exists = true;
		return cpu_ranges_give(&t->grains, i * CHUNK_GRAINS, CHUNK_GRAINS);
	}
	return -ENOSPC;
}

static size_t grains_of(size_t words)
{
	return (words + GRAIN_WORDS - 1) / GRAIN_WORDS;
}

/* Takes up to piece->n grains in a row, but at least that many. */
static int tables_take_grains(struct cpu_tables *t, uint32_t least, struct cpu_range *piece)
{
	int r = cpu_ranges_take(&t->grains, piece->n, CHUNK_GRAINS, &piece->first);

	if (r == -ENOSPC) {
		r = tables_grow(t);
		if (r >= 0)
			r = cpu_ranges_take(&t->grains, piece->n, CHUNK_GRAINS, &piece->first);
	}
	/* What is left may be in many places. */
	while (r == -ENOSPC && piece->n > least) {
		piece->n = MAX(piece->n / 2, least);
		r = cpu_ranges_take(&t->grains, piece->n, CHUNK_GRAINS, &piece->first);
	}
	return r;
}

/*
 * Allocates a piece for that many words, or for a whole chunk at most; it may be smaller, but holds
 * the least.
 */
static int tables_take(struct cpu_tables *t, struct cpu_table *table, size_t words, size_t least,
		       struct cpu_range *ret)
{
	struct cpu_range *grown,
		piece = {.n = (uint32_t)MIN(grains_of(words), (size_t)CHUNK_GRAINS)};
	int r;

	if (!cpu_shares_allow(&t->shares, table->uid, piece.n))
		return -EDQUOT;
	grown = realloc(table->pieces, (table->n_pieces + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	table->pieces = grown;
	r = tables_take_grains(t, (uint32_t)grains_of(least), &piece);
	if (r < 0)
		return r;
	cpu_shares_take(&t->shares, table->uid, piece.n);
	table->pieces[table->n_pieces++] = piece;
	*ret = (struct cpu_range){.first = piece.first * GRAIN_WORDS, .n = piece.n * GRAIN_WORDS};
	return 0;
}

static uint32_t *chunk_map(struct cpu_tables *t, uint32_t number)
{
	struct chunk *c = &t->chunks[number];
	void *p;

	if (!c->exists || c->words)
		return c->words;
	if (t->n_mapped == CHUNKS_MAPPED_MAX)
		cpu_tables_unmap(t);
	p = mmap(NULL, sizeof(struct cpu_sampler_chunk), PROT_READ | PROT_WRITE, MAP_SHARED, c->fd,
		 0);
	if (p == MAP_FAILED)
		return NULL;
	t->n_mapped++;
	c->words = p;
	return p;
}

static int tables_write(struct cpu_tables *t, uint32_t first, const uint32_t *words, size_t n)
{
	uint32_t number = first >> CPU_SAMPLER_CHUNK_BITS;
	uint32_t *chunk = chunk_map(t, number);

	if (!chunk)
		return -ENOMEM;
	if (n)
		memcpy(&chunk[first & (CPU_SAMPLER_CHUNK_WORDS - 1)], words, n * sizeof(*words));
	return 0;
}

/*
 * Places all words, keeping those of a page together, and records in the pages where theirs are.
 * Uses up the rest of the index's piece first.
 */
static int tables_place(struct cpu_tables *t, struct cpu_table *table, struct cpu_table_build *b,
			struct cpu_range room)
{
	size_t next = 0;

	while (next < b->n_pages) {
		uint32_t from = b->pages[next].first, to = from;
		size_t end = next;
		int r;

		for (; end < b->n_pages; end++) {
			struct cpu_table_page *p = &b->pages[end];

			if (p->first + p->n - from > room.n)
				break;
			to = p->first + p->n;
			p->first = room.first + (p->first - from);
		}
		r = tables_write(t, room.first, &b->words[from], to - from);
		if (r < 0)
			return r;
		next = end;
		if (next == b->n_pages)
			break;
		r = tables_take(t, table, b->n_words - to, CPU_SAMPLER_PAGE_SIZE, &room);
		if (r < 0)
			return r;
	}
	return 0;
}

static int tables_lay_out(struct cpu_tables *t, struct cpu_table *table, struct cpu_table_build *b)
{
	size_t index_words = b->n_pages * 2;
	struct cpu_range room;
	int r;

	_Static_assert(sizeof(*b->pages) == 2 * sizeof(uint32_t), "the index is two words a page");
	_Static_assert(CPU_SAMPLER_PAGE_SIZE <= GRAIN_WORDS, "a page has a row per byte at most");
	/* Before anything is written. */
	if (!cpu_shares_allow(&t->shares, table->uid,
			      (uint32_t)grains_of(index_words + b->n_words)))
		return -EDQUOT;
	r = tables_take(t, table, index_words + b->n_words, index_words, &room);
	if (r < 0)
		return r;
	table->index = room.first;
	table->n_pages = (uint32_t)b->n_pages;
	table->first_page = b->first_page;
	room.first += (uint32_t)index_words;
	room.n -= (uint32_t)index_words;
	r = tables_place(t, table, b, room);
	if (r < 0)
		return r;
	return tables_write(t, table->index, (const uint32_t *)b->pages, index_words);
}

static int take_rows(void *context, const struct elf_unwind_row *rows, size_t n)
{
	return cpu_table_build_rows(context, rows, n);
}

int cpu_tables_add(struct cpu_tables *t, uid_t uid,
		   int (*load)(void *context, const struct elf_unwind_sink *sink), void *context,
		   struct cpu_table *ret_table)
{
	_cleanup_free_ struct cpu_table_build *b = calloc(1, sizeof(*b));
	const struct elf_unwind_sink sink = {.rows = take_rows, .context = b};
	struct cpu_table table = {.uid = uid};
	int r;

	if (!b)
		return -ENOMEM;
	b->all = t->rules;
	b->uid = uid;
	r = load(context, &sink);
	if (r >= 0)
		r = cpu_table_build_finish(b);
	if (r >= 0)
		r = tables_lay_out(t, &table, b);
	if (r < 0) {
		cpu_table_build_release(b);
		cpu_tables_remove(t, &table);
		return r;
	}
	table.rules = TAKE_PTR(b->rules);
	table.n_rules = b->n_rules;
	b->n_rules = 0;
	cpu_table_build_release(b);
	*ret_table = table;
	return 0;
}

void cpu_tables_remove(struct cpu_tables *t, struct cpu_table *table)
{
	for (size_t i = 0; i < table->n_pieces; i++) {
		(void)cpu_ranges_give(&t->grains, table->pieces[i].first, table->pieces[i].n);
		cpu_shares_give(&t->shares, table->uid, table->pieces[i].n);
	}
	for (size_t i = 0; i < table->n_rules; i++)
		cpu_rules_give(t->rules, table->rules[i]);
	free(table->pieces);
	free(table->rules);
	*table = (struct cpu_table){0};
}

bool cpu_tables_are_short(const struct cpu_tables *t, uid_t uid)
{
	return cpu_shares_are_short(&t->shares, uid) || cpu_rules_are_short(t->rules, uid);
}

void cpu_tables_trim(struct cpu_tables *t)
{
	bool spare = false;

	for (uint32_t i = 0; i < CPU_SAMPLER_CHUNKS; i++) {
		if (!t->chunks[i].exists ||
		    cpu_ranges_take_at(&t->grains, i * CHUNK_GRAINS, CHUNK_GRAINS) < 0)
			continue;
		if (!spare) {
			spare = true;
			(void)cpu_ranges_give(&t->grains, i * CHUNK_GRAINS, CHUNK_GRAINS);
			continue;
		}
		if (t->chunks_fd >= 0)
			(void)bpf_map_delete_elem(t->chunks_fd, &i);
		chunk_release(t, &t->chunks[i]);
	}
}

const uint32_t *cpu_tables_chunk(struct cpu_tables *t, uint32_t number)
{
	return number < CPU_SAMPLER_CHUNKS ? chunk_map(t, number) : NULL;
}

void cpu_tables_unmap(struct cpu_tables *t)
{
	for (size_t i = 0; i < CPU_SAMPLER_CHUNKS; i++)
		chunk_unmap(t, &t->chunks[i]);
}
