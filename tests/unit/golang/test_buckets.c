/* tests/unit/golang/test_buckets.c: lists of buckets in made-up memory, real and forged. */
#include "golang/buckets/buckets.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "mem_fake.h"

#define BASE ((uint64_t)0xc000000000)
#define CHUNK ((size_t)256 << 10)

/* A program: memory that grows by chunks, as the runtime's does, and the list in it. */
struct program {
	const struct golang_layout *layout;
	struct proc_mem *mem;
	uint8_t *memory;
	size_t size;
	size_t used;
	uint64_t head;
	size_t n;
	struct golang_buckets buckets;
};

static void program_start(struct program *p, unsigned int minor, size_t size)
{
	struct err err;

	*p = (struct program){.size = size};
	assert_int_equal(golang_layout_for(minor, &p->layout, &err), 0);
	p->memory = calloc(1, size);
	assert_non_null(p->memory);
	assert_int_equal(proc_mem_open_fake(&p->mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(p->mem, BASE, p->memory, size), 0);
	golang_buckets_init(&p->buckets, p->mem, p->layout);
}

static void program_end(struct program *p)
{
	golang_buckets_release(&p->buckets);
	proc_mem_close(p->mem);
	free(p->memory);
}

static uint8_t *program_at(struct program *p, uint64_t addr)
{
	return p->memory + (addr - BASE);
}

static struct golang_bucket_header *header_at(struct program *p, uint64_t addr)
{
	return (struct golang_bucket_header *)program_at(p, addr);
}

static void set_counts(struct program *p, uint64_t addr, uint64_t allocs, uint64_t frees)
{
	struct golang_bucket_header *h = header_at(p, addr);
	uint64_t *active = (uint64_t *)(program_at(p, addr) + sizeof(*h) + 8 * h->depth);

	active[0] = allocs;
	active[1] = frees;
	if (p->layout->cycle_words == 4) {
		active[2] = allocs * h->size;
		active[3] = frees * h->size;
	}
}

/* Puts a new bucket at the head of the list; number n allocated n + 1 objects. */
static uint64_t program_put(struct program *p, size_t off, uint64_t depth)
{
	uint64_t addr = BASE + off;
	struct golang_bucket_header *h = header_at(p, addr);

	assert_true(off + golang_bucket_bytes(p->layout, depth) <= p->size);
	for (uint64_t i = 0; i < depth; i++)
		((uint64_t *)(h + 1))[i] = 0x400000 + 16 * p->n + i;
	*h = (struct golang_bucket_header){
		.allnext = p->head,
		.typ = GOLANG_BUCKET_MEM,
		.size = 16 * (1 + p->n % 8),
		.depth = depth,
	};
	h->hash = golang_bucket_hash((const uint8_t *)(h + 1), depth, h->size);
	set_counts(p, addr, p->n + 1, 0);
	p->used = off + golang_bucket_bytes(p->layout, depth);
	p->head = addr;
	p->n++;
	return addr;
}

static uint64_t program_bucket(struct program *p, uint64_t depth)
{
	size_t bytes = golang_bucket_bytes(p->layout, depth);
	bool fits = p->used / CHUNK == (p->used + bytes - 1) / CHUNK;

	return program_put(p, fits ? p->used : (p->used / CHUNK + 1) * CHUNK, depth);
}

static void program_buckets(struct program *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)program_bucket(p, 1 + i % 31);
}

static int program_read(struct program *p, struct err *err)
{
	err->text[0] = 0;
	return golang_buckets_follow(&p->buckets, p->head, 9, err);
}

static void assert_all_read(const struct program *p)
{
	assert_int_equal(p->buckets.len, p->n);
	assert_int_equal(p->buckets.bad, 0);
	assert_false(p->buckets.incomplete);
	for (size_t i = 0; i < p->n; i++) {
		const struct golang_bucket *b = &p->buckets.items[i];

		/* Oldest first. */
		assert_int_equal(b->counts.allocs, i + 1);
		assert_int_equal(b->size, 16 * (1 + i % 8));
		for (uint32_t k = 0; k < b->depth; k++)
			assert_int_equal(golang_buckets_stack(&p->buckets, b)[k],
					 0x400000 + 16 * i + k);
	}
}

static void list_is_followed_through_many_chunks(void **state)
{
	struct err err;

	(void)state;
	for (unsigned int minor = 26; minor <= 27; minor++) {
		struct program p;

		program_start(&p, minor, 12 * CHUNK);
		program_buckets(&p, 8000);
		assert_int_equal(program_read(&p, &err), 0);
		assert_all_read(&p);
		/* Windows, not buckets, are what is read: each byte about once. */
		assert_true(proc_mem_stats(p.mem).bytes < 2 * p.size);
		program_end(&p);
	}
}

static void empty_list_is_no_error(void **state)
{
	struct program p;
	struct err err;

	(void)state;
	program_start(&p, 27, CHUNK);
	assert_int_equal(program_read(&p, &err), 0);
	assert_int_equal(p.buckets.len, 0);
	assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), 0);
	program_end(&p);
}

static void new_buckets_are_found_at_the_head(void **state)
{
	uint64_t bytes;
	struct program p;
	struct err err;

	(void)state;
	program_start(&p, 26, 8 * CHUNK);
	program_buckets(&p, 3000);
	assert_int_equal(program_read(&p, &err), 0);
	program_buckets(&p, 10);
	bytes = proc_mem_stats(p.mem).bytes;
	assert_int_equal(program_read(&p, &err), 0);
	assert_all_read(&p);
	assert_true(proc_mem_stats(p.mem).bytes - bytes < CHUNK);
	/* And nothing is new the third time. */
	assert_int_equal(program_read(&p, &err), 0);
	assert_all_read(&p);
	program_end(&p);
}

static void reread_takes_the_latest_counts(void **state)
{
	struct program p;
	struct err err;

	(void)state;
	for (unsigned int minor = 26; minor <= 27; minor++) {
		program_start(&p, minor, 4 * CHUNK);
		program_buckets(&p, 2000);
		assert_int_equal(program_read(&p, &err), 0);
		for (size_t i = 0; i < p.n; i++)
			set_counts(&p, p.buckets.items[i].addr, 7 * i, i);
		assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), 0);
		for (size_t i = 0; i < p.n; i++) {
			assert_int_equal(p.buckets.items[i].counts.allocs, 7 * i);
			assert_int_equal(p.buckets.items[i].counts.frees, i);
		}
		/* Dense buckets are few ranges. */
		assert_true(p.buckets.n_ranges <= 1 + p.used / CHUNK);
		program_end(&p);
	}
}

static void trimmed_buckets_are_reread_through_a_small_buffer(void **state)
{
	struct program p;
	struct err err;

	(void)state;
	program_start(&p, 27, 4 * CHUNK);
	program_buckets(&p, 2000);
	program_bucket(&p, GOLANG_BUCKET_MAX_DEPTH);
	assert_int_equal(program_read(&p, &err), 0);
	/* The second time its ranges are known. */
	for (size_t round = 1; round < 4; round++) {
		for (size_t i = 0; i < p.n; i++)
			set_counts(&p, p.buckets.items[i].addr, (round + 1) * i, round * i);
		assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), 0);
		for (size_t i = 0; i < p.n; i++) {
			assert_int_equal(p.buckets.items[i].counts.allocs, (round + 1) * i);
			assert_int_equal(p.buckets.items[i].counts.frees, round * i);
		}
		if (round > 1)
			assert_true(p.buckets.images_len <= 256 << 10);
		golang_buckets_trim(&p.buckets);
		assert_null(p.buckets.images);
	}
	program_end(&p);
}

static void reread_notices_memory_that_was_replaced(void **state)
{
	struct program p;
	struct err err;

	(void)state;
	program_start(&p, 27, CHUNK);
	program_buckets(&p, 100);
	assert_int_equal(program_read(&p, &err), 0);
	for (int what = 0; what < 3; what++) {
		struct golang_bucket_header *h = header_at(&p, p.buckets.items[50].addr);
		struct golang_bucket_header was = *h;

		*(what == 0 ? &h->depth : what == 1 ? &h->size : &h->typ) += 1;
		assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), -EBADMSG);
		assert_true(err.text[0]);
		*h = was;
		assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), 0);
	}
	program_end(&p);
}

static void wrong_hashes_are_counted_and_passed(void **state)
{
	struct program p;
	struct err err;
	size_t wrong = 0;

	(void)state;
	program_start(&p, 26, 4 * CHUNK);
	for (size_t i = 0; i < 1000; i++) {
		uint64_t addr = program_bucket(&p, 8);

		if (i % 10 == 3 && ++wrong)
			header_at(&p, addr)->hash ^= 1ULL << (i % 64);
	}
	assert_int_equal(program_read(&p, &err), 0);
	assert_int_equal(p.buckets.bad, wrong);
	assert_int_equal(p.buckets.len, p.n - wrong);
	assert_false(p.buckets.incomplete);
	program_end(&p);
}

static void list_of_wrong_hashes_is_an_error(void **state)
{
	struct program p;
	struct err err;

	(void)state;
	program_start(&p, 26, 4 * CHUNK);
	for (size_t i = 0; i < 1500; i++)
		header_at(&p, program_bucket(&p, 8))->hash++;
	assert_int_equal(program_read(&p, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "hash"));
	assert_int_equal(p.buckets.len, 0);
	program_end(&p);
}

static void wild_link_ends_the_list_and_is_said(void **state)
{
	static const uint64_t wild[] = {8, BASE - 8, BASE + 4 * CHUNK - 40, BASE + 3,
					UINT64_MAX - 7};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		struct program p;

		program_start(&p, 26, 4 * CHUNK);
		program_buckets(&p, 1000);
		/* From the 1000th down to the 601st they can be read. */
		for (uint64_t addr = p.head, k = 0; k < 400; k++) {
			uint64_t next = header_at(&p, addr)->allnext;

			if (k == 399)
				header_at(&p, addr)->allnext = wild[i];
			addr = next;
		}
		assert_int_equal(program_read(&p, &err), 0);
		assert_int_equal(p.buckets.len, 400);
		assert_int_equal(p.buckets.bad, 1);
		assert_true(p.buckets.incomplete);
		assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), 0);
		program_end(&p);
	}
}

static void circle_is_an_error(void **state)
{
	static const size_t lengths[] = {1, 2, 3, 100, 3000};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct program p;
		uint64_t first, second = 0;

		program_start(&p, 27, 8 * CHUNK);
		first = program_bucket(&p, 4);
		for (size_t k = 1; k < lengths[i]; k++)
			second = program_bucket(&p, 4);
		header_at(&p, first)->allnext = second ? second : first;
		/* The way into the circle is part of the walk. */
		program_buckets(&p, 1000);
		assert_int_equal(program_read(&p, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "cycle"));
		assert_int_equal(p.buckets.len, 0);
		program_end(&p);
	}
}

static void circle_after_a_good_reading_keeps_what_is_known(void **state)
{
	struct program p;
	uint64_t new;
	struct err err;

	(void)state;
	program_start(&p, 27, 8 * CHUNK);
	program_buckets(&p, 1000);
	assert_int_equal(program_read(&p, &err), 0);
	new = program_bucket(&p, 4);
	header_at(&p, new)->allnext = new;
	assert_int_equal(program_read(&p, &err), -EBADMSG);
	assert_int_equal(p.buckets.len, 1000);
	assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), 0);
	program_end(&p);
}

static void absurd_depth_ends_the_list(void **state)
{
	static const uint64_t depths[] = {GOLANG_BUCKET_MAX_DEPTH + 1, 1ULL << 32, 1ULL << 61,
					  UINT64_MAX};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		struct program p;

		program_start(&p, 26, CHUNK);
		program_buckets(&p, 10);
		header_at(&p, p.head)->depth = depths[i];
		program_buckets(&p, 5);
		assert_int_equal(program_read(&p, &err), 0);
		assert_int_equal(p.buckets.len, 5);
		assert_int_equal(p.buckets.bad, 1);
		assert_true(p.buckets.incomplete);
		program_end(&p);
	}
}

static void deepest_stack_is_read(void **state)
{
	struct program p;
	struct err err;

	(void)state;
	program_start(&p, 26, CHUNK);
	(void)program_bucket(&p, GOLANG_BUCKET_MAX_DEPTH);
	(void)program_bucket(&p, 0);
	assert_int_equal(program_read(&p, &err), 0);
	assert_all_read(&p);
	assert_int_equal(p.buckets.items[0].depth, GOLANG_BUCKET_MAX_DEPTH);
	program_end(&p);
}

/* Each begins within the record of the one before: wherever a range ends, one sticks out of it. */
static void overlapping_buckets_are_reread_within_their_ranges(void **state)
{
	const size_t size = (size_t)40 << 20;
	struct program p;
	struct err err;

	(void)state;
	program_start(&p, 27, size);
	(void)program_put(&p, 0, 1);
	while (p.used + 16384 < size)
		(void)program_put(&p, p.used - 64, GOLANG_BUCKET_MAX_DEPTH);
	assert_int_equal(program_read(&p, &err), 0);
	assert_int_equal(p.buckets.len, p.n);
	assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), 0);
	assert_true(p.buckets.n_ranges > 1);
	assert_int_equal(p.buckets.items[p.n - 1].counts.allocs, p.n);
	program_end(&p);
}

static void million_buckets_are_refused_after_bounded_work(void **state)
{
	struct program p;
	struct err err;

	(void)state;
	program_start(&p, 27, (GOLANG_BUCKETS_MAX + 4096) * 136);
	for (size_t i = 0; i < GOLANG_BUCKETS_MAX; i++)
		(void)program_bucket(&p, 2);
	assert_int_equal(program_read(&p, &err), 0);
	assert_int_equal(p.buckets.len, GOLANG_BUCKETS_MAX);
	assert_int_equal(golang_buckets_reread(&p.buckets, 9, &err), 0);
	(void)program_bucket(&p, 2);
	assert_int_equal(program_read(&p, &err), -E2BIG);
	assert_non_null(strstr(err.text, "1048576"));
	/* What was known stays. */
	assert_int_equal(p.buckets.len, GOLANG_BUCKETS_MAX);
	/* All of them were followed twice and read again once. */
	assert_true(proc_mem_stats(p.mem).bytes < 2 * 3 * p.size);
	program_end(&p);
}

static void scattered_list_runs_out_of_work(void **state)
{
	enum { STRIDE = 1 << 16, SEGMENTS = 4000 };
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	_cleanup_free_ uint8_t *memory = calloc(SEGMENTS, 256);
	const struct golang_layout *layout;
	struct golang_buckets b;
	struct err err;

	(void)state;
	assert_non_null(memory);
	assert_int_equal(golang_layout_for(27, &layout, &err), 0);
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	for (uint64_t i = 0; i < SEGMENTS; i++) {
		struct golang_bucket_header *h = (struct golang_bucket_header *)(memory + 256 * i);

		*h = (struct golang_bucket_header){.typ = GOLANG_BUCKET_MEM, .size = 16};
		h->allnext = i ? BASE + (i - 1) * STRIDE : 0;
		h->hash = golang_bucket_hash(NULL, 0, 16);
		assert_int_equal(proc_mem_fake_add(mem, BASE + i * STRIDE, h, 256), 0);
	}
	golang_buckets_init(&b, mem, layout);
	assert_int_equal(golang_buckets_follow(&b, BASE + (SEGMENTS - 1) * STRIDE, 9, &err), 0);
	assert_int_equal(b.len, SEGMENTS);
	golang_buckets_release(&b);
	golang_buckets_init(&b, mem, layout);
	b.cache.work_left = 1 << 20;
	assert_int_equal(golang_buckets_follow(&b, BASE + (SEGMENTS - 1) * STRIDE, 9, &err),
			 -E2BIG);
	assert_non_null(strstr(err.text, "scattered"));
	assert_int_equal(b.len, 0);
	golang_buckets_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_is_followed_through_many_chunks),
		cmocka_unit_test(empty_list_is_no_error),
		cmocka_unit_test(new_buckets_are_found_at_the_head),
		cmocka_unit_test(reread_takes_the_latest_counts),
		cmocka_unit_test(trimmed_buckets_are_reread_through_a_small_buffer),
		cmocka_unit_test(reread_notices_memory_that_was_replaced),
		cmocka_unit_test(wrong_hashes_are_counted_and_passed),
		cmocka_unit_test(list_of_wrong_hashes_is_an_error),
		cmocka_unit_test(wild_link_ends_the_list_and_is_said),
		cmocka_unit_test(circle_is_an_error),
		cmocka_unit_test(circle_after_a_good_reading_keeps_what_is_known),
		cmocka_unit_test(absurd_depth_ends_the_list),
		cmocka_unit_test(deepest_stack_is_read),
		cmocka_unit_test(overlapping_buckets_are_reread_within_their_ranges),
		cmocka_unit_test(million_buckets_are_refused_after_bounded_work),
		cmocka_unit_test(scattered_list_runs_out_of_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
