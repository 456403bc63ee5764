/*
 * src/golang/bucket.h: one memory-profile bucket as it lies in the target; runtime/mprof.go.
 *
 *    0  next       (hash chain)
 *    8  allnext    (list of all buckets, newest first)
 *   16  typ        1 is memory
 *   24  hash       of the stack and the size
 *   32  size       of the objects
 *   40  nstk
 *   48  nstk return addresses, leaf first
 *    +  active, future[0], future[1], future[2]:
 *         1.17 to 1.26: {allocs, frees, alloc_bytes, free_bytes} each
 *         1.27:         {allocs, frees} each; bytes are counts times size
 *
 * Everything before the record never changes once the bucket is in the list.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "golang/layout.h"
#include "proc/mem.h"

#define GOLANG_BUCKET_HEADER 48
/* Deeper than any runtime records: GODEBUG=profstackdepth is at most 1024, and a few skipped. */
#define GOLANG_BUCKET_MAX_DEPTH 1040
#define GOLANG_BUCKET_MEM 1
#define GOLANG_BUCKET_CYCLES 4

struct golang_bucket_header {
	uint64_t next;
	uint64_t allnext;
	uint64_t typ;
	uint64_t hash;
	uint64_t size;
	uint64_t depth;
};

/* Bytes of a whole bucket with a stack of this depth. */
static inline size_t golang_bucket_bytes(const struct golang_layout *layout, uint64_t depth)
{
	return GOLANG_BUCKET_HEADER + 8 * depth +
	       (size_t)GOLANG_BUCKET_CYCLES * layout->cycle_words * 8;
}

/* The runtime's own hash over the stack and the size: 64 bits that prove the layout. */
uint64_t golang_bucket_hash(const uint8_t *stack, uint64_t depth, uint64_t size);

/* Is there a memory bucket at addr? */
bool golang_bucket_probe(struct proc_mem *mem, uint64_t addr);

/* Counts of a bucket: what is published as of cycle, and the sum of all cycles. */
struct golang_counts {
	uint64_t allocs;
	uint64_t frees;
	uint64_t all_allocs;
	uint64_t all_frees;
	bool unpublished; /* the current cycle still waits for its flush */
	bool torn;	  /* bytes disagree with counts: published ones were read while written */
	bool all_torn;	  /* the same for any cycle */
};
struct golang_counts golang_bucket_counts(const uint8_t *record, uint64_t size, uint32_t cycle,
					  const struct golang_layout *layout);
