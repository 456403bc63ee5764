/*
 * src/golang/buckets/buckets.h: all buckets of one profile, and their latest counts.
 *
 * Buckets are never freed or moved and only their counts change, so the list is walked once,
 * through windows (buckets are dense in 256 KB chunks). Later reads fetch all known buckets with
 * one vectored read of coalesced ranges, and walk only what is new at the head of the list.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "golang/binary/mem_cache.h"
#include "golang/buckets/bucket.h"
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

/* The combined state of all buckets. */
struct golang_tally {
	bool published;	    /* anything, ever */
	bool flush_pending; /* some bucket's current cycle is not flushed yet */
	uint64_t torn;
	uint64_t all_torn;
	uint64_t moved; /* delays that changed since the last read */
};

struct golang_buckets {
	struct proc_mem *mem;		    /* borrowed */
	const struct golang_layout *layout; /* of memory buckets */
	uint64_t typ;
	const char *what;    /* "heap", "block", "mutex": for messages */
	size_t record_bytes; /* what follows the stack */
	struct golang_mem_cache cache;
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
	uint8_t *images; /* where ranges are read to; kept between reads */
	size_t images_len;
	bool trimmed;		   /* freed by golang_buckets_trim() */
	struct golang_tally tally; /* of the last read of all buckets */
	uint64_t bad;		   /* refused buckets of all walks */
	bool incomplete;	   /* the list could not be followed to its end */
};

/* A million buckets is ten times the maximum of real programs; more is refused with a message. */
#define GOLANG_BUCKETS_MAX ((size_t)1 << 20)
#define GOLANG_BUCKETS_NO_STACK UINT32_MAX
#define GOLANG_BUCKETS_MAX_STACK_WORDS ((size_t)16 << 20) /* 128 MB */

void golang_buckets_init(struct golang_buckets *b, struct proc_mem *mem,
			 const struct golang_layout *layout);
/* For blocking or mutex contention, which ignore cycle. */
void golang_buckets_init_delays(struct golang_buckets *b, struct proc_mem *mem, uint64_t typ);
void golang_buckets_release(struct golang_buckets *b);

/*
 * Walks from head to the newest known bucket, and reads the counts of new ones. Counts buckets that
 * fail their hash in bad. -EBADMSG if the list has a cycle or consists of bad ones; -E2BIG past the
 * limits; -ESRCH.
 */
int golang_buckets_follow(struct golang_buckets *b, uint64_t head, uint32_t cycle, struct err *err);
/* Reads the counts of all known buckets again, and restarts the tally. */
int golang_buckets_reread(struct golang_buckets *b, uint32_t cycle, struct err *err);
/* Frees the shared read buffer: for readers of many programs. */
void golang_buckets_trim(struct golang_buckets *b);
/* Frees the stacks of all known buckets, once used; */
void golang_buckets_forget_stacks(struct golang_buckets *b);
/* and loads them again: they never change. */
int golang_buckets_recall_stacks(struct golang_buckets *b, struct err *err);

/* Not for a bucket whose stack was freed. */
static inline const uint64_t *golang_buckets_stack(const struct golang_buckets *b,
						   const struct golang_bucket *bucket)
{
	/* NULL if all stacks are empty. */
	return b->stacks ? b->stacks + bucket->stack : NULL;
}
