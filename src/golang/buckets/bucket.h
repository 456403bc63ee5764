/*
 * src/golang/buckets/bucket.h: one bucket of a profile, as laid out in the target;
 * runtime/mprof.go.
 *
 *    0  next       (hash chain)
 *    8  allnext    (list of all buckets, newest first)
 *   16  typ        1 is memory, 2 blocking, 3 mutex contention
 *   24  hash       of the stack and the size
 *   32  size       of the objects; 0 where there are none
 *   40  nstk
 *   48  nstk return addresses, leaf first
 *    +  blocking, mutex: count f64, cycles i64
 *    +  memory: active, future[0], future[1], future[2]:
 *         1.17 to 1.26: {allocs, frees, alloc_bytes, free_bytes} each
 *         1.27:         {allocs, frees} each; bytes are counts times size
 *
 * Everything before the record never changes once the bucket is in the list.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "golang/binary/layout.h"
#include "proc/mem.h"

#define GOLANG_BUCKET_HEADER 48
/* Deeper than any runtime records: GODEBUG=profstackdepth is at most 1024, plus a few skipped. */
#define GOLANG_BUCKET_MAX_DEPTH 1040
#define GOLANG_BUCKET_MEM 1
#define GOLANG_BUCKET_BLOCK 2
#define GOLANG_BUCKET_MUTEX 3
#define GOLANG_BUCKET_CYCLES 4
#define GOLANG_BUCKET_DELAY_BYTES 16

struct golang_bucket_header {
	uint64_t next;
	uint64_t allnext;
	uint64_t typ;
	uint64_t hash;
	uint64_t size;
	uint64_t depth;
};

/* Bytes of a whole memory bucket with a stack of this depth. */
static inline size_t golang_bucket_bytes(const struct golang_layout *layout, uint64_t depth)
{
	return GOLANG_BUCKET_HEADER + 8 * depth +
	       (size_t)GOLANG_BUCKET_CYCLES * layout->cycle_words * 8;
}

/* The runtime's own hash of stack and size: 64 bits that verify the layout. */
uint64_t golang_bucket_hash(const uint8_t *stack, uint64_t depth, uint64_t size);

/* Is there a bucket of this type at addr? */
bool golang_bucket_probe_typ(struct proc_mem *mem, uint64_t addr, uint64_t typ);

static inline bool golang_bucket_probe(struct proc_mem *mem, uint64_t addr)
{
	return golang_bucket_probe_typ(mem, addr, GOLANG_BUCKET_MEM);
}

/* Number and total length of waits, in ticks; scaled when recorded. */
struct golang_delay {
	double count;
	int64_t cycles;
	bool moved; /* it differed in the previous read */
};
/* Copies the record of GOLANG_BUCKET_DELAY_BYTES; returns whether that changed anything. */
bool golang_delay_take(struct golang_delay *delay, const uint8_t *record);

/* Counts of a bucket: what is published as of cycle, and the sum of all cycles. */
struct golang_counts {
	uint64_t allocs;
	uint64_t frees;
	uint64_t all_allocs;
	uint64_t all_frees;
	bool unpublished; /* the current cycle is not flushed yet */
	bool torn;	  /* bytes and counts disagree: read while being written */
	bool all_torn;	  /* the same for any cycle */
};

/* A word count known at compile time reduces this to a few moves. */
static inline struct golang_counts golang_bucket_counts_of(const uint8_t *record, uint64_t size,
							   uint32_t cycle,
							   const unsigned int cycle_words)
{
	unsigned int current = cycle % 3 + 1;
	struct golang_counts c = {0};
	uint64_t active[4] = {0};
	uint64_t waiting = 0;

	memcpy(active, record, 8UL * cycle_words);
#pragma GCC unroll 12
	for (unsigned int i = cycle_words; i < GOLANG_BUCKET_CYCLES * cycle_words; i++) {
		uint64_t word;

		memcpy(&word, record + 8UL * i, sizeof(word));
		waiting |= word;
	}
	/* Most stacks have allocated nothing since the last garbage collection. */
	if (!waiting) {
		c.allocs = c.all_allocs = active[0];
		c.frees = c.all_frees = active[1];
		c.torn = c.all_torn = cycle_words == 4 && (active[2] != active[0] * size ||
							   active[3] != active[1] * size);
		return c;
	}
#pragma GCC unroll 4
	for (unsigned int i = 0; i < GOLANG_BUCKET_CYCLES; i++) {
		/* i == 0 is active; future[k] is i == k + 1. */
		bool published = i == 0 || i == current;
		uint64_t words[4] = {0};
		bool torn;

		memcpy(words, record + 8UL * cycle_words * i, 8UL * cycle_words);
		torn = cycle_words == 4 &&
		       (words[2] != words[0] * size || words[3] != words[1] * size);
		c.all_allocs += words[0];
		c.all_frees += words[1];
		c.allocs += published ? words[0] : 0;
		c.frees += published ? words[1] : 0;
		c.unpublished |= i == current && (words[0] | words[1]);
		c.torn |= published && torn;
		c.all_torn |= torn;
	}
	return c;
}

/* Inline: most of the work of a repeated read. */
static inline struct golang_counts golang_bucket_counts(const uint8_t *record, uint64_t size,
							uint32_t cycle,
							const struct golang_layout *layout)
{
	return layout->cycle_words == 4 ? golang_bucket_counts_of(record, size, cycle, 4)
					: golang_bucket_counts_of(record, size, cycle, 2);
}
