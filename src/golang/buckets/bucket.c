/* src/golang/buckets/bucket.c: see bucket.h. */
#include "golang/buckets/bucket.h"

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

bool golang_bucket_probe_typ(struct proc_mem *mem, uint64_t addr, uint64_t typ)
{
	struct golang_bucket_header h;
	uint8_t stack[8 * GOLANG_BUCKET_MAX_DEPTH];

	return proc_mem_read(mem, addr, &h, sizeof(h), NULL) == 0 && h.typ == typ &&
	       h.depth <= GOLANG_BUCKET_MAX_DEPTH &&
	       proc_mem_read(mem, addr + sizeof(h), stack, 8 * h.depth, NULL) == 0 &&
	       golang_bucket_hash(stack, h.depth, h.size) == h.hash;
}

bool golang_delay_take(struct golang_delay *d, const uint8_t *record)
{
	uint64_t count, count_before;
	int64_t cycles_before = d->cycles;

	/* Compare bits: a forged count may be NaN, which is not equal to itself. */
	memcpy(&count_before, &d->count, sizeof(count_before));
	memcpy(&count, record, sizeof(count));
	memcpy(&d->count, record, sizeof(d->count));
	memcpy(&d->cycles, record + 8, sizeof(d->cycles));
	return count != count_before || d->cycles != cycles_before;
}
