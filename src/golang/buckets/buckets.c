/* src/golang/buckets/buckets.c: see buckets.h. */
#include "golang/buckets/buckets.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/grow.h"

#define WALK_WINDOW_BYTES ((size_t)64 << 10)
/* Few: each costs a page fault per 4 KB. Programs with more Ps have more lists, and need more. */
#define WALK_WINDOWS 8
#define WALK_MAX_WINDOWS 1024
/* This many invalid buckets are no accident. */
#define WALK_MAX_BAD 1000
/* Reading a small gap is cheaper than a second range. */
#define RANGE_MAX_GAP 256
/*
 * Far more than one bucket, yet small enough to distribute ranges evenly. Readers that free the
 * buffer have one of this size: few reads, and few pages to come and go.
 */
#define RANGE_MAX_BYTES ((size_t)256 << 10)
static_assert(RANGE_MAX_BYTES > (size_t)16 * GOLANG_BUCKET_MAX_DEPTH, "room for any bucket");
/* Per vectored read: limits the buffer, which is kept, for programs with very many buckets. */
#define REREAD_MAX_BYTES ((size_t)4 << 20)

void golang_buckets_init(struct golang_buckets *b, struct proc_mem *mem,
			 const struct golang_layout *layout)
{
	*b = (struct golang_buckets){
		.mem = mem,
		.layout = layout,
		.typ = GOLANG_BUCKET_MEM,
		.what = "heap",
		.record_bytes = golang_bucket_bytes(layout, 0) - GOLANG_BUCKET_HEADER,
	};
	golang_mem_cache_init(&b->cache, mem, WALK_WINDOW_BYTES, WALK_WINDOWS, WALK_MAX_WINDOWS);
}

void golang_buckets_init_delays(struct golang_buckets *b, struct proc_mem *mem, uint64_t typ)
{
	*b = (struct golang_buckets){
		.mem = mem,
		.typ = typ,
		.what = typ == GOLANG_BUCKET_BLOCK ? "block" : "mutex",
		.record_bytes = GOLANG_BUCKET_DELAY_BYTES,
	};
	golang_mem_cache_init(&b->cache, mem, WALK_WINDOW_BYTES, WALK_WINDOWS, WALK_MAX_WINDOWS);
}

static size_t bucket_bytes(const struct golang_buckets *b, uint64_t depth)
{
	return GOLANG_BUCKET_HEADER + 8 * depth + b->record_bytes;
}

void golang_buckets_release(struct golang_buckets *b)
{
	golang_mem_cache_release(&b->cache);
	free(b->items);
	free(b->stacks);
	free(b->ranges);
	free(b->by_addr);
	free(b->images);
	*b = (struct golang_buckets){0};
}

static void tally_counts(struct golang_tally *t, const struct golang_counts *c)
{
	t->published |= (c->allocs | c->frees) != 0;
	t->flush_pending |= c->unpublished;
	t->torn += c->torn;
	t->all_torn += c->all_torn;
}

/* Copies the record at p and adds it to the tally. */
static inline void bucket_take(struct golang_buckets *b, struct golang_bucket *bucket,
			       const uint8_t *record, uint32_t cycle)
{
	if (b->typ == GOLANG_BUCKET_MEM) {
		bucket->counts = golang_bucket_counts(record, bucket->size, cycle, b->layout);
		tally_counts(&b->tally, &bucket->counts);
		return;
	}
	bucket->delay.moved = golang_delay_take(&bucket->delay, record);
	b->tally.moved += bucket->delay.moved;
}

/* Appends the bucket whose image is at p. */
static int buckets_add(struct golang_buckets *b, uint64_t addr, const uint8_t *p, uint32_t cycle)
{
	struct golang_bucket_header h;
	const uint8_t *stack = p + GOLANG_BUCKET_HEADER;
	int r;

	memcpy(&h, p, sizeof(h));
	r = golang_grow(&b->items, &b->cap, b->len + 1, sizeof(*b->items), GOLANG_BUCKETS_MAX);
	if (r == 0)
		r = golang_grow(&b->stacks, &b->stacks_cap, b->stacks_len + h.depth,
				sizeof(*b->stacks), GOLANG_BUCKETS_MAX_STACK_WORDS);
	if (r < 0)
		return r;
	b->items[b->len++] = (struct golang_bucket){
		.addr = addr,
		.size = h.size,
		.depth = (uint32_t)h.depth,
		.stack = (uint32_t)b->stacks_len,
	};
	bucket_take(b, &b->items[b->len - 1], stack + 8 * h.depth, cycle);
	if (h.depth)
		memcpy(b->stacks + b->stacks_len, stack, 8 * h.depth);
	b->stacks_len += h.depth;
	return 0;
}

/* Adds the bucket at addr if it is valid, and returns the address of the next. */
static int walk_step(struct golang_buckets *b, uint64_t addr, uint32_t cycle, uint64_t *ret_next)
{
	struct golang_bucket_header h;
	int r = 0;
	const uint8_t *p = golang_mem_cache_get(&b->cache, addr, sizeof(h), &r);

	if (!p)
		return r;
	memcpy(&h, p, sizeof(h));
	if (h.typ != b->typ || h.depth > GOLANG_BUCKET_MAX_DEPTH)
		return -EBADMSG;
	*ret_next = h.allnext;
	p = golang_mem_cache_get(&b->cache, addr, bucket_bytes(b, h.depth), &r);
	if (!p)
		return r;
	if (golang_bucket_hash(p + GOLANG_BUCKET_HEADER, h.depth, h.size) != h.hash) {
		b->bad++;
		return 0;
	}
	return buckets_add(b, addr, p, cycle);
}

static int walk_error(const struct golang_buckets *b, int code, struct err *err)
{
	if (code != -E2BIG)
		return err_set(err, code, "cannot read %s buckets: %s", b->what, strerror(-code));
	if (golang_mem_cache_spent(&b->cache))
		return err_set(
			err, code,
			"%s buckets are too scattered in memory: %zu read, and the list continues",
			b->what, b->len);
	return err_set(err, code,
		       "the program has more than %zu %s buckets, or deeper stacks than sonde "
		       "can hold",
		       b->len, b->what);
}

void golang_buckets_forget_stacks(struct golang_buckets *b)
{
	for (size_t i = 0; i < b->len; i++)
		b->items[i].stack = GOLANG_BUCKETS_NO_STACK;
	free(b->stacks);
	b->stacks = NULL;
	b->stacks_len = b->stacks_cap = 0;
}

int golang_buckets_recall_stacks(struct golang_buckets *b, struct err *err)
{
	for (size_t i = 0; i < b->len; i++) {
		struct golang_bucket *bucket = &b->items[i];
		int r;

		if (bucket->stack != GOLANG_BUCKETS_NO_STACK)
			continue;
		r = golang_grow(&b->stacks, &b->stacks_cap, b->stacks_len + bucket->depth,
				sizeof(*b->stacks), GOLANG_BUCKETS_MAX_STACK_WORDS);
		if (r < 0)
			return walk_error(b, r, err);
		if (bucket->depth)
			r = proc_mem_read(b->mem, bucket->addr + GOLANG_BUCKET_HEADER,
					  b->stacks + b->stacks_len, 8UL * bucket->depth, err);
		if (r < 0)
			return r;
		bucket->stack = (uint32_t)b->stacks_len;
		b->stacks_len += bucket->depth;
	}
	return 0;
}

/* The walk is newest first; the array is oldest first. */
static void reverse(struct golang_bucket *items, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct golang_bucket tmp = items[i];

		items[i] = items[n - 1 - i];
		items[n - 1 - i] = tmp;
	}
}

static int walk(struct golang_buckets *b, uint64_t head, uint32_t cycle, struct err *err)
{
	uint64_t known = b->len ? b->items[b->len - 1].addr : 0;
	uint64_t bad_before = b->bad;
	/* Brent's algorithm: a mark moved at each power of two detects any cycle. */
	uint64_t mark = 0;
	size_t steps = 0, next_mark = 1;

	for (uint64_t addr = head; addr && addr != known;) {
		uint64_t next = 0;
		int r;

		if (addr == mark)
			return err_set(err, -EBADMSG, "the list of %s buckets has a cycle",
				       b->what);
		if (++steps == next_mark) {
			mark = addr;
			next_mark *= 2;
		}
		r = walk_step(b, addr, cycle, &next);
		if (r == -EBADMSG || r == -EFAULT) {
			/* A dangling link: everything after it is lost, and reported as such. */
			b->bad++;
			b->incomplete = true;
			return 0;
		}
		if (r < 0)
			return walk_error(b, r, err);
		if (b->bad - bad_before > WALK_MAX_BAD)
			return err_set(err, -EBADMSG,
				       "more than %d %s buckets fail their hash: the layout "
				       "differs from the assumed one, or the memory is forged",
				       WALK_MAX_BAD, b->what);
		addr = next;
	}
	return 0;
}

int golang_buckets_follow(struct golang_buckets *b, uint64_t head, uint32_t cycle, struct err *err)
{
	size_t len = b->len;
	size_t stacks_len = b->stacks_len;
	int r;

	if (len == 0)
		b->tally = (struct golang_tally){0};
	r = walk(b, head, cycle, err);

	/* The cache holds current counts; the next walk must read new ones. */
	golang_mem_cache_release(&b->cache);
	if (r < 0) {
		b->len = len;
		b->stacks_len = stacks_len;
		return r;
	}
	if (b->len > len) {
		reverse(b->items + len, b->len - len);
		/* Most programs soon have nearly all of their buckets. */
		golang_shrink(&b->items, &b->cap, b->len, sizeof(*b->items));
	}
	return 0;
}

static int compare_by_addr(const void *x, const void *y, void *arg)
{
	const struct golang_bucket *items = arg;
	uint64_t a = items[*(const uint32_t *)x].addr;
	uint64_t b = items[*(const uint32_t *)y].addr;

	return a < b ? -1 : a > b;
}

static uint64_t bucket_end(const struct golang_buckets *b, const struct golang_bucket *bucket)
{
	return bucket->addr + bucket_bytes(b, bucket->depth);
}

/* Sorts the buckets by address and merges neighbours into ranges. */
static int ranges_build(struct golang_buckets *b)
{
	size_t cap = 0;

	free(b->by_addr);
	b->by_addr = malloc(b->len * sizeof(*b->by_addr));
	b->n_ranges = b->ranges_of = 0;
	if (!b->by_addr)
		return -ENOMEM;
	for (size_t i = 0; i < b->len; i++)
		b->by_addr[i] = (uint32_t)i;
	qsort_r(b->by_addr, b->len, sizeof(*b->by_addr), compare_by_addr, b->items);
	free(b->ranges);
	b->ranges = NULL;
	for (size_t i = 0; i < b->len; i++) {
		const struct golang_bucket *bucket = &b->items[b->by_addr[i]];
		struct proc_range *last = b->n_ranges ? &b->ranges[b->n_ranges - 1] : NULL;
		uint64_t end = bucket_end(b, bucket);
		int r;

		if (last && bucket->addr <= last->addr + last->len + RANGE_MAX_GAP &&
		    end - last->addr <= RANGE_MAX_BYTES) {
			last->len = MAX(last->len, end - last->addr);
			continue;
		}
		r = golang_grow(&b->ranges, &cap, b->n_ranges + 1, sizeof(*b->ranges), SIZE_MAX);
		if (r < 0)
			return r;
		b->ranges[b->n_ranges++] =
			(struct proc_range){.addr = bucket->addr, .len = end - bucket->addr};
	}
	b->ranges_of = b->len;
	return 0;
}

/* Assigns each range from first on a place in the buffer; returns how many fit. */
static size_t ranges_place(struct golang_buckets *b, size_t first)
{
	size_t n = 0, off = 0;

	while (first + n < b->n_ranges && off + b->ranges[first + n].len <= b->images_len) {
		b->ranges[first + n].dst = b->images + off;
		off += b->ranges[first + n++].len;
	}
	return n;
}

/*
 * Keep the buffer: its first use costs more than reading, a page fault per 4 KB. Reading half of
 * the ranges at a time hardly takes more system calls, and the data is still in the CPU's cache
 * when the counts are extracted.
 */
static int images_ensure(struct golang_buckets *b)
{
	size_t total = 0, len;

	for (size_t i = 0; i < b->n_ranges; i++)
		total += b->ranges[i].len;
	len = b->trimmed ? MIN(total, RANGE_MAX_BYTES)
			 : MIN(MIN(total, total / 2 + RANGE_MAX_BYTES), REREAD_MAX_BYTES);
	if (len <= b->images_len)
		return 0;
	free(b->images);
	b->images = malloc(len);
	b->images_len = b->images ? len : 0;
	return b->images ? 0 : -ENOMEM;
}

/* Extracts the counts from a range; *next is an index into by_addr. */
static int range_counts(struct golang_buckets *b, const struct proc_range *range, size_t *next,
			uint32_t cycle)
{
	for (; *next < b->len; (*next)++) {
		struct golang_bucket *bucket = &b->items[b->by_addr[*next]];
		const uint8_t *p = (const uint8_t *)range->dst + (bucket->addr - range->addr);
		struct golang_bucket_header h;

		/*
		 * Forged buckets may overlap; one that extends past the end starts the next range.
		 */
		if (bucket_end(b, bucket) > range->addr + range->len)
			break;
		/* Never changes in a Go program; if it has, this memory was reused. */
		memcpy(&h, p, sizeof(h));
		if (h.typ != b->typ || h.size != bucket->size || h.depth != bucket->depth)
			return -EBADMSG;
		bucket_take(b, bucket, p + GOLANG_BUCKET_HEADER + 8UL * bucket->depth, cycle);
	}
	return 0;
}

void golang_buckets_trim(struct golang_buckets *b)
{
	free(b->images);
	b->images = NULL;
	b->images_len = 0;
	b->trimmed = true;
}

int golang_buckets_reread(struct golang_buckets *b, uint32_t cycle, struct err *err)
{
	size_t next = 0;

	b->tally = (struct golang_tally){0};
	if (b->ranges_of != b->len && ranges_build(b) < 0)
		return err_oom(err);
	if (images_ensure(b) < 0)
		return err_oom(err);
	for (size_t first = 0; first < b->n_ranges;) {
		size_t n = ranges_place(b, first);
		int r = proc_mem_readv(b->mem, b->ranges + first, n, err);

		for (size_t i = first; r == 0 && i < first + n; i++)
			r = range_counts(b, &b->ranges[i], &next, cycle);
		if (r == -EBADMSG)
			return err_set(err, r,
				       "the stack of a %s bucket has changed: the program replaced "
				       "its memory",
				       b->what);
		if (r < 0)
			return r;
		first += n;
	}
	return 0;
}
