/*
 * tests/fuzz/golang/fuzz_buckets.c: lists of buckets. The input describes them, so that hashes are
 * right unless it says otherwise and the walk gets far; then it changes bytes and a second reading
 * follows.
 *
 *   0   release (even: four words a cycle, odd: two), number of buckets, head, changes
 *   4   per bucket: flags, depth, size, link, gap, and a count
 *   +   per change: where (u16), what
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "golang/buckets/buckets.h"
#include "mem_fake.h"

#define BASE ((uint64_t)0xc000010000)
#define MEMORY ((size_t)128 << 10)
#define HOLE ((size_t)4096) /* at the end, where only wild links go */
#define MAX_BUCKETS 200
#define DESCRIPTION 6

enum {
	WRONG_HASH = 1,
	WRONG_TYPE = 2,
	ABSURD_DEPTH = 4,
	LINKED = 8, /* to the bucket that link names; else to the one before */
	WILD = 16,  /* into memory that is not there, or into the middle of something */
	TORN = 32,
	FAR = 64, /* after a hole of a page */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct program {
	const struct golang_layout *layout;
	uint8_t *memory;
	uint64_t addrs[MAX_BUCKETS];
	size_t n;
	size_t used;
	bool regular; /* nothing was forged */
};

static void put(uint8_t *p, uint64_t value)
{
	memcpy(p, &value, sizeof(value));
}

static void add_record(const struct program *p, uint8_t *record, const uint8_t *d, uint64_t size)
{
	for (unsigned int i = 0; i < GOLANG_BUCKET_CYCLES; i++) {
		uint8_t *cycle = record + 8UL * p->layout->cycle_words * i;
		uint64_t allocs = d[5] >> i, frees = d[5] >> (i + 1);

		put(cycle, allocs);
		put(cycle + 8, frees);
		if (p->layout->cycle_words == 4) {
			put(cycle + 16, allocs * size + !!(d[0] & TORN));
			put(cycle + 24, frees * size);
		}
	}
}

static void add_bucket(struct program *p, const uint8_t *d, uint64_t link)
{
	uint64_t depth = d[1], size = d[2] * 16ULL;
	size_t bytes = golang_bucket_bytes(p->layout, depth);
	uint8_t *b;

	p->used += d[4] * 8UL + (d[0] & FAR ? 8192 : 0);
	if (p->used + bytes > MEMORY - HOLE)
		return;
	b = p->memory + p->used;
	for (uint64_t i = 0; i < depth; i++)
		put(b + GOLANG_BUCKET_HEADER + 8 * i, 0x400000 + i * 16 + d[3]);
	put(b + 8, d[0] & WILD ? BASE + MEMORY / 2 + d[3] * 977ULL : link);
	put(b + 16, d[0] & WRONG_TYPE ? 2 : GOLANG_BUCKET_MEM);
	put(b + 24,
	    golang_bucket_hash(b + GOLANG_BUCKET_HEADER, depth, size) + !!(d[0] & WRONG_HASH));
	put(b + 32, size);
	put(b + 40, d[0] & ABSURD_DEPTH ? depth << 40 | 1041 : depth);
	add_record(p, b + GOLANG_BUCKET_HEADER + 8 * depth, d, size);
	p->regular =
		p->regular && !(d[0] & (WRONG_HASH | WRONG_TYPE | ABSURD_DEPTH | WILD | LINKED));
	p->addrs[p->n++] = BASE + p->used;
	p->used += bytes;
}

static size_t build(struct program *p, const uint8_t *data, size_t size)
{
	size_t n = MIN(data[1], (size_t)MAX_BUCKETS), at = 4;

	for (size_t i = 0; i < n && at + DESCRIPTION <= size; i++, at += DESCRIPTION) {
		const uint8_t *d = data + at;
		uint64_t link = p->n ? p->addrs[p->n - 1] : 0;

		/* A link to a bucket that comes later is known once it is there: see relink. */
		if (d[0] & LINKED && p->n)
			link = p->addrs[d[3] % p->n];
		add_bucket(p, d, link);
	}
	return at;
}

/* Circles: the oldest bucket's link goes to any of them. */
static void relink(struct program *p, uint8_t to)
{
	if (to == 0 || p->n == 0)
		return;
	put(p->memory + (p->addrs[0] - BASE) + 8, p->addrs[to % p->n]);
	p->regular = false;
}

static void check(const struct golang_buckets *b)
{
	assert(b->len <= b->cap && b->stacks_len <= b->stacks_cap);
	for (size_t i = 0; i < b->len; i++) {
		const struct golang_bucket *bucket = &b->items[i];

		assert(bucket->depth <= GOLANG_BUCKET_MAX_DEPTH);
		assert((size_t)bucket->stack + bucket->depth <= b->stacks_len);
		assert(bucket->counts.torn <= bucket->counts.all_torn);
	}
}

static void read_twice(struct program *p, const uint8_t *data, size_t size, struct proc_mem *mem)
{
	uint8_t heads = data[2], n_changes = data[3];
	uint64_t head = p->n ? p->addrs[heads % p->n] : 0;
	struct golang_buckets b;
	struct err err = {};
	size_t at = 4 + (size_t)data[1] * DESCRIPTION, len;
	int r;

	golang_buckets_init(&b, mem, p->layout);
	r = golang_buckets_follow(&b, head, data[0], &err);
	assert(r == 0 || (err.text[0] && b.len == 0));
	assert(!p->regular || (r == 0 && b.bad == 0 && !b.incomplete));
	assert(!p->regular || p->n == 0 || b.len == heads % p->n + 1);
	check(&b);
	r = golang_buckets_reread(&b, data[0], &err);
	assert(r == 0);
	for (; n_changes && at + 3 <= size; n_changes--, at += 3)
		p->memory[(data[at] | data[at + 1] << 8) * 2UL % MEMORY] = data[at + 2];
	len = b.len;
	r = golang_buckets_follow(&b, p->n ? p->addrs[p->n - 1] : 0, data[0] + 1U, &err);
	assert(r == 0 || b.len == len);
	check(&b);
	(void)golang_buckets_reread(&b, data[0] + 1U, &err);
	check(&b);
	golang_buckets_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	_cleanup_free_ uint8_t *memory = calloc(1, MEMORY);
	struct program p = {.memory = memory, .regular = true};
	struct err err;

	if (size < 4 || !memory || proc_mem_open_fake(&mem, &err) < 0)
		return 0;
	(void)golang_layout_for(data[0] & 1 ? 27 : 26, &p.layout, &err);
	(void)build(&p, data, size);
	relink(&p, size > 4 && data[1] ? data[4] & 0x80 ? data[3] : 0 : 0);
	/* Two mappings that touch. */
	if (proc_mem_fake_add(mem, BASE, memory, MEMORY / 2) < 0 ||
	    proc_mem_fake_add(mem, BASE + MEMORY / 2, memory + MEMORY / 2, MEMORY / 2 - HOLE) < 0)
		return 0;
	read_twice(&p, data, size, mem);
	return 0;
}
