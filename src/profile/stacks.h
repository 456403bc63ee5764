/*
 * src/profile/stacks.h: the stacks of a profile: lists of location ids, equal ones shared.
 *
 * The index that finds equal stacks is built on first use: a sum of stored stacks, known to be
 * distinct, never needs it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_stack {
	const uint32_t *ids; /* leaf first */
	uint64_t hash;	     /* of visible contents, see profile.h */
	uint32_t n;
};

struct profile_stacks_slot;
struct profile_stacks_block;

/* A zeroed struct profile_stacks is empty. */
struct profile_stacks {
	struct profile_stacks_block *blocks; /* of ids */
	size_t block_bytes;		     /* of all */
	uint32_t *free;			     /* in the newest */
	uint32_t n_free;
	struct profile_stack *items;
	uint32_t len;
	uint32_t cap;
	struct profile_stacks_slot *slots;
	uint32_t n_slots;   /* a power of two, or 0 */
	uint32_t n_indexed; /* number of indexed stacks */
};

/* Finds or adds the stack. A new one has the id len had, and hash 0. */
int profile_stacks_add(struct profile_stacks *s, const uint32_t *ids, uint32_t n, uint32_t *ret_id);
/* For a stack known to be new. Both: -ENOMEM, -E2BIG. */
int profile_stacks_append(struct profile_stacks *s, const uint32_t *ids, uint32_t n,
			  uint32_t *ret_id);
bool profile_stacks_find(struct profile_stacks *s, const uint32_t *ids, uint32_t n,
			 uint32_t *ret_id);
/* Memory in use, and what adding or appending n ids may take, in bytes. */
size_t profile_stacks_memory(const struct profile_stacks *s);
size_t profile_stacks_add_growth(const struct profile_stacks *s, uint32_t n);
size_t profile_stacks_append_growth(const struct profile_stacks *s, uint32_t n);
void profile_stacks_release(struct profile_stacks *s);
