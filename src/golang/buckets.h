/*
 * src/golang/buckets.h: all buckets of one profile of a program, and their latest counts.
 *
 * Buckets are never freed or moved and only their counts change, so the list is walked once,
 * through windows (buckets lie densely in 256 KB chunks). Later readings fetch all known buckets
 * with one vectored read of coalesced ranges, and walk only what is new at the head of the list.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/bucket.h"
#include "golang/windows.h"
#include "proc/mem.h"

struct golang_bucket {
	uint64_t addr;
	uint64_t size;
	union {
		struct golang_counts counts; /* of memory */
		struct golang_delay delay;   /* of the others */
	};
	uint32_t stack; /* index of its first word in stacks, or GOLANG_BUCKETS_NO_STACK */
	uint32_t depth;
};

/* What the counts of all buckets say together. */
struct golang_tally {
	bool published;	    /* something was, ever */
	bool flush_pending; /* the current cycle of some bucket still waits */
	uint64_t torn;
	uint64_t all_torn;
	uint64_t moved; /* delays that were others when they were read before */
};

struct golang_buckets {
	struct proc_mem *mem;		    /* borrowed */
	const struct golang_layout *layout; /* of memory buckets */
	uint64_t typ;
	const char *what;    /* "heap", "block", "mutex": for sentences */
	size_t record_bytes; /* what follows the stack */
	struct golang_windows windows;
	struct golang_bucket *items; /* oldest first, so new ones are appended */
	size_t len;
	size_t cap;
	uint64_t *stacks;
	size_t stacks_len;
	size_t stacks_cap;
	struct proc_range *ranges; /* coalesced, by address; valid for ranges_of buckets */
	size_t n_ranges;
	uint32_t *by_addr;
	size_t ranges_of;
	uint8_t *images; /* where ranges are read to; kept between readings */
	size_t images_len;
	bool trimmed;		   /* it is not: golang_buckets_trim() was called */
	struct golang_tally tally; /* of the last reading of all buckets */
	uint64_t bad;		   /* refused buckets of all walks */
	bool incomplete;	   /* the list could not be followed to its end */
};

/* A million buckets is ten times what the largest programs have; more is refused, and said. */
#define GOLANG_BUCKETS_MAX ((size_t)1 << 20)
#define GOLANG_BUCKETS_NO_STACK UINT32_MAX
#define GOLANG_BUCKETS_MAX_STACK_WORDS ((size_t)16 << 20) /* 128 MB */

void golang_buckets_init(struct golang_buckets *b, struct proc_mem *mem,
			 const struct golang_layout *layout);
/* Of blocking or mutex contention: cycle does not matter to them. */
void golang_buckets_init_delays(struct golang_buckets *b, struct proc_mem *mem, uint64_t typ);
void golang_buckets_release(struct golang_buckets *b);

/*
 * Walks from head to the newest bucket that is known, and reads the counts of the new ones.
 * Buckets that fail their hash are counted in bad; -EBADMSG when the list runs in a circle or
 * consists of bad ones; -E2BIG past the limits; -ESRCH.
 */
int golang_buckets_follow(struct golang_buckets *b, uint64_t head, uint32_t cycle, struct err *err);
/* Reads the counts of all known buckets again. Their tally begins anew. */
int golang_buckets_reread(struct golang_buckets *b, uint32_t cycle, struct err *err);
/* Gives the buffer back that readings share: for readers of many programs. */
void golang_buckets_trim(struct golang_buckets *b);
/* Gives back the stacks of all known buckets, for whoever has made use of them; */
void golang_buckets_forget_stacks(struct golang_buckets *b);
/* and reads them again: they never change. */
int golang_buckets_recall_stacks(struct golang_buckets *b, struct err *err);

/* Not for a bucket whose stack was given back. */
static inline const uint64_t *golang_buckets_stack(const struct golang_buckets *b,
						   const struct golang_bucket *bucket)
{
	/* None, where all stacks are empty. */
	return b->stacks ? b->stacks + bucket->stack : NULL;
}
