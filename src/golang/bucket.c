/* src/golang/bucket.c: see bucket.h. */
#include "golang/bucket.h"

#include <string.h>

uint64_t golang_bucket_hash(const uint8_t *stack, uint64_t depth, uint64_t size)
{
	uint64_t h = 0;

	for (uint64_t i = 0; i <= depth; i++) {
		uint64_t word = size;

		if (i < depth)
			memcpy(&word, stack + 8 * i, sizeof(word));
		h += word;
		h += h << 10;
		h ^= h >> 6;
	}
	h += h << 3;
	h ^= h >> 11;
	return h;
}

bool golang_bucket_probe(struct proc_mem *mem, uint64_t addr)
{
	struct golang_bucket_header h;
	uint8_t stack[8 * GOLANG_BUCKET_MAX_DEPTH];

	return proc_mem_read(mem, addr, &h, sizeof(h), NULL) == 0 && h.typ == GOLANG_BUCKET_MEM &&
	       h.depth <= GOLANG_BUCKET_MAX_DEPTH &&
	       proc_mem_read(mem, addr + sizeof(h), stack, 8 * h.depth, NULL) == 0 &&
	       golang_bucket_hash(stack, h.depth, h.size) == h.hash;
}

struct golang_counts golang_bucket_counts(const uint8_t *record, uint64_t size, uint32_t cycle,
					  const struct golang_layout *layout)
{
	struct golang_counts c = {0};

	for (unsigned int i = 0; i < GOLANG_BUCKET_CYCLES; i++) {
		/* i == 0 is active; future[k] is i == k + 1. */
		bool current = i == cycle % 3 + 1;
		uint64_t words[4] = {0};

		memcpy(words, record + 8UL * layout->cycle_words * i, 8UL * layout->cycle_words);
		c.all_allocs += words[0];
		c.all_frees += words[1];
		if (i == 0 || current) {
			c.allocs += words[0];
			c.frees += words[1];
		}
		if (current && (words[0] || words[1]))
			c.unpublished = true;
		if (layout->cycle_words == 4 &&
		    (words[2] != words[0] * size || words[3] != words[1] * size)) {
			c.all_torn = true;
			c.torn = c.torn || i == 0 || current;
		}
	}
	return c;
}
