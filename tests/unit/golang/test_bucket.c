/* tests/unit/golang/test_bucket.c: the hash and the counts of one bucket. */
#include "golang/buckets/bucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "mem_fake.h"

/* Buckets of a program of Go 1.19.8, as its runtime had hashed them. */
static const uint64_t real_stack[] = {0x4bcbb1, 0x4bcab8, 0x4bd6cf, 0x4bd06a,
				      0x4bcd5d, 0x4bf225, 0x437992, 0x461e81};
#define REAL_SIZE 48
#define REAL_HASH 0x785a63c154db7eceULL
static const uint64_t real_stack_2[] = {0x4bcb3a, 0x4bc9b6, 0x4bd6cf, 0x4bd06a,
					0x4bcd5d, 0x4bf225, 0x437992, 0x461e81};

static const struct golang_layout *layout_of(unsigned int minor)
{
	const struct golang_layout *layout;

	assert_int_equal(golang_layout_for(minor, &layout, NULL), 0);
	return layout;
}

static void hash_is_the_runtimes_own(void **state)
{
	const uint8_t *stack = (const uint8_t *)real_stack;
	const uint8_t *stack_2 = (const uint8_t *)real_stack_2;
	uint64_t one = 1;

	(void)state;
	assert_int_equal(golang_bucket_hash(stack, 8, REAL_SIZE), REAL_HASH);
	assert_int_equal(golang_bucket_hash(stack_2, 8, 1152), 0xe216b79de27eb0a1ULL);
	assert_int_equal(golang_bucket_hash(stack_2, 8, 1280), 0xe216b79de26f0105ULL);
	assert_int_not_equal(golang_bucket_hash(stack, 7, REAL_SIZE), REAL_HASH);
	/* By hand: 1 + 1024 = 1025, ^ 16 = 1041; + 1065984 = 1067025, ^ 16672 = 1050929;
	 * + 8407432 = 9458361, ^ 4618 = 9453747. */
	assert_int_equal(golang_bucket_hash((const uint8_t *)&one, 1, 0), 9453747);
	assert_int_equal(golang_bucket_hash(NULL, 0, 0), 0);
}

static void hash_does_not_need_aligned_bytes(void **state)
{
	uint8_t bytes[1 + sizeof(real_stack)];

	(void)state;
	memcpy(bytes + 1, real_stack, sizeof(real_stack));
	assert_int_equal(golang_bucket_hash(bytes + 1, 8, REAL_SIZE), REAL_HASH);
}

static void probe_knows_a_bucket_from_other_memory(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct {
		struct golang_bucket_header header;
		uint64_t stack[8];
	} bucket = {.header = {.typ = 1, .hash = REAL_HASH, .size = REAL_SIZE, .depth = 8}};
	struct err err;

	(void)state;
	memcpy(bucket.stack, real_stack, sizeof(real_stack));
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, 0x10000, &bucket, sizeof(bucket)), 0);
	assert_true(golang_bucket_probe(mem, 0x10000));
	assert_false(golang_bucket_probe(mem, 0x10008));
	assert_false(golang_bucket_probe(mem, 0));
	assert_false(golang_bucket_probe(mem, UINT64_MAX - 47));
	bucket.header.depth = 9; /* runs out of memory */
	assert_false(golang_bucket_probe(mem, 0x10000));
	bucket.header.depth = UINT64_MAX;
	assert_false(golang_bucket_probe(mem, 0x10000));
	bucket.header.depth = 8;
	bucket.header.typ = 2;
	assert_false(golang_bucket_probe(mem, 0x10000));
	bucket.header.typ = 1;
	bucket.stack[3]++;
	assert_false(golang_bucket_probe(mem, 0x10000));
}

/* A record with these allocations and frees in active, future[0], [1] and [2]. */
struct record {
	uint64_t words[16];
};

static struct record record_of(const struct golang_layout *layout, uint64_t size,
			       const uint64_t allocs[4], const uint64_t frees[4])
{
	struct record r = {{0}};

	for (unsigned int i = 0; i < 4; i++) {
		uint64_t *cycle = r.words + (size_t)i * layout->cycle_words;

		cycle[0] = allocs[i];
		cycle[1] = frees[i];
		if (layout->cycle_words == 4) {
			cycle[2] = allocs[i] * size;
			cycle[3] = frees[i] * size;
		}
	}
	return r;
}

static struct golang_counts counts_of(const struct golang_layout *layout, uint32_t cycle,
				      const uint64_t allocs[4], const uint64_t frees[4])
{
	struct record r = record_of(layout, 64, allocs, frees);

	return golang_bucket_counts((const uint8_t *)r.words, 64, cycle, layout);
}

static void counts_are_what_was_published(void **state)
{
	const uint64_t allocs[4] = {10, 0, 3, 4}, frees[4] = {6, 0, 1, 0};

	(void)state;
	for (unsigned int minor = 26; minor <= 27; minor++) {
		/* Cycle 9 flushes future[0], which is empty. */
		struct golang_counts c = counts_of(layout_of(minor), 9, allocs, frees);

		assert_int_equal(c.allocs, 10);
		assert_int_equal(c.frees, 6);
		assert_int_equal(c.all_allocs, 17);
		assert_int_equal(c.all_frees, 7);
		assert_false(c.unpublished || c.torn || c.all_torn);
	}
}

static void counts_of_the_current_cycle_are_added_before_its_flush(void **state)
{
	const uint64_t allocs[4] = {10, 1, 20, 300}, frees[4] = {6, 1, 2, 3};
	static const uint64_t current[3] = {1, 20, 300};

	(void)state;
	for (unsigned int minor = 26; minor <= 27; minor++) {
		for (uint32_t cycle = 0; cycle < 9; cycle++) {
			struct golang_counts c = counts_of(layout_of(minor), cycle, allocs, frees);

			assert_int_equal(c.allocs, 10 + current[cycle % 3]);
			assert_int_equal(c.frees, 6 + cycle % 3 + 1);
			assert_true(c.unpublished);
		}
	}
}

static void counts_before_the_first_gc_are_in_the_future(void **state)
{
	const uint64_t allocs[4] = {0, 0, 0, 5}, frees[4] = {0};

	(void)state;
	for (unsigned int minor = 26; minor <= 27; minor++) {
		/* Cycle 0: mallocs count into future[2]. */
		struct golang_counts c = counts_of(layout_of(minor), 0, allocs, frees);

		assert_int_equal(c.allocs, 0);
		assert_int_equal(c.frees, 0);
		assert_false(c.unpublished);
		assert_int_equal(c.all_allocs, 5);
		assert_int_equal(c.all_frees, 0);
	}
}

static void counts_that_disagree_with_their_bytes_are_torn(void **state)
{
	const uint64_t allocs[4] = {10, 1, 2, 3}, frees[4] = {0};
	const struct golang_layout *layout = layout_of(26);

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		for (unsigned int word = 2; word < 4; word++) {
			struct record r = record_of(layout, 64, allocs, frees);
			struct golang_counts c;

			r.words[4 * i + word] += 64;
			c = golang_bucket_counts((const uint8_t *)r.words, 64, 1, layout);
			assert_true(c.all_torn);
			/* What counts at cycle 1 is active and future[1]. */
			assert_int_equal(c.torn, i == 0 || i == 2);
		}
	}
}

static void counts_of_1_27_cannot_be_torn(void **state)
{
	struct golang_counts c;
	struct record r;

	(void)state;
	memset(&r, 0xff, sizeof(r));
	c = golang_bucket_counts((const uint8_t *)r.words, 64, 1, layout_of(27));
	assert_false(c.torn || c.all_torn);
	assert_true(c.unpublished);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_is_the_runtimes_own),
		cmocka_unit_test(hash_does_not_need_aligned_bytes),
		cmocka_unit_test(probe_knows_a_bucket_from_other_memory),
		cmocka_unit_test(counts_are_what_was_published),
		cmocka_unit_test(counts_of_the_current_cycle_are_added_before_its_flush),
		cmocka_unit_test(counts_before_the_first_gc_are_in_the_future),
		cmocka_unit_test(counts_that_disagree_with_their_bytes_are_torn),
		cmocka_unit_test(counts_of_1_27_cannot_be_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
