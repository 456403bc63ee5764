/* src/profile/stacks.c: see stacks.h. */
#include "profile/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

struct profile_stacks_slot {
	uint32_t hash; /* of the ids */
	uint32_t id;   /* plus 1; 0 is free */
};

struct profile_stacks_block {
	struct profile_stacks_block *next;
	uint32_t ids[];
};

#define MIN_ITEMS 16U
#define MIN_IDS 256U /* of a block */
#define MAX_IDS 65536U

static uint32_t hash_ids(const uint32_t *ids, uint32_t n)
{
	return (uint32_t)hash_bytes(ids, n * sizeof(*ids));
}

/* The slot for a stack not indexed yet. */
static void slots_put(struct profile_stacks_slot *slots, uint32_t n_slots,
		      struct profile_stacks_slot slot)
{
	uint32_t i = slot.hash & (n_slots - 1);

	while (slots[i].id != 0)
		i = (i + 1) & (n_slots - 1);
	slots[i] = slot;
}

/* Half of the slots stay free. */
static int index_grow(struct profile_stacks *s, uint32_t n)
{
	uint32_t n_slots = MAX(s->n_slots, 2 * MIN_ITEMS);
	struct profile_stacks_slot *slots;

	while (n_slots / 2 < n)
		n_slots *= 2;
	if (n_slots == s->n_slots)
		return 0;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slots[i].id != 0)
			slots_put(slots, n_slots, s->slots[i]);
	free(s->slots);
	s->slots = slots;
	s->n_slots = n_slots;
	return 0;
}

/* Indexes all stacks, and makes room for another. */
static int index_update(struct profile_stacks *s)
{
	int r = index_grow(s, s->len + 1);

	for (; r == 0 && s->n_indexed < s->len; s->n_indexed++) {
		const struct profile_stack *item = &s->items[s->n_indexed];

		slots_put(s->slots, s->n_slots,
			  (struct profile_stacks_slot){hash_ids(item->ids, item->n),
						       s->n_indexed + 1});
	}
	return r;
}

static bool index_find(const struct profile_stacks *s, const uint32_t *ids, uint32_t n,
		       uint32_t hash, uint32_t *ret_id)
{
	uint32_t i = hash & (s->n_slots - 1);

	for (; s->slots[i].id != 0; i = (i + 1) & (s->n_slots - 1)) {
		const struct profile_stack *item = &s->items[s->slots[i].id - 1];

		if (s->slots[i].hash != hash || item->n != n ||
		    (n > 0 && memcmp(item->ids, ids, n * sizeof(*ids)) != 0))
			continue;
		*ret_id = s->slots[i].id - 1;
		return true;
	}
	return false;
}

bool profile_stacks_find(struct profile_stacks *s, const uint32_t *ids, uint32_t n,
			 uint32_t *ret_id)
{
	return index_update(s) == 0 && index_find(s, ids, n, hash_ids(ids, n), ret_id);
}

static int items_grow(struct profile_stacks *s)
{
	uint32_t cap = s->cap ? s->cap * 2 : MIN_ITEMS;
	struct profile_stack *items;

	if (cap > UINT32_MAX / 4)
		return -E2BIG;
	items = realloc(s->items, cap * sizeof(*items));
	if (!items)
		return -ENOMEM;
	s->items = items;
	s->cap = cap;
	return 0;
}

/* Starts small: most profiles cover one process and one interval. */
static size_t block_ids(const struct profile_stacks *s, uint32_t n)
{
	return MAX(n, MIN(MAX(s->block_bytes / sizeof(uint32_t), MIN_IDS), MAX_IDS));
}

static int blocks_grow(struct profile_stacks *s, uint32_t n)
{
	size_t more = block_ids(s, n);
	struct profile_stacks_block *block = malloc(sizeof(*block) + more * sizeof(*block->ids));

	if (!block)
		return -ENOMEM;
	block->next = s->blocks;
	s->blocks = block;
	s->block_bytes += sizeof(*block) + more * sizeof(*block->ids);
	s->free = block->ids;
	s->n_free = (uint32_t)more;
	return 0;
}

int profile_stacks_append(struct profile_stacks *s, const uint32_t *ids, uint32_t n,
			  uint32_t *ret_id)
{
	int r = s->len == s->cap ? items_grow(s) : 0;

	if (r == 0 && (n > s->n_free || !s->blocks))
		r = blocks_grow(s, n);
	if (r < 0)
		return r;
	if (n > 0)
		memcpy(s->free, ids, n * sizeof(*ids));
	s->items[s->len] = (struct profile_stack){.ids = s->free, .n = n};
	s->free += n;
	s->n_free -= n;
	*ret_id = s->len++;
	return 0;
}

int profile_stacks_add(struct profile_stacks *s, const uint32_t *ids, uint32_t n, uint32_t *ret_id)
{
	uint32_t hash = hash_ids(ids, n);
	int r = index_update(s);

	if (r < 0 || index_find(s, ids, n, hash, ret_id))
		return r;
	r = profile_stacks_append(s, ids, n, ret_id);
	if (r < 0)
		return r;
	slots_put(s->slots, s->n_slots, (struct profile_stacks_slot){hash, *ret_id + 1});
	s->n_indexed = s->len;
	return 0;
}

size_t profile_stacks_memory(const struct profile_stacks *s)
{
	return s->block_bytes + s->cap * sizeof(*s->items) + s->n_slots * sizeof(*s->slots);
}

size_t profile_stacks_append_growth(const struct profile_stacks *s, uint32_t n)
{
	return (s->len == s->cap ? s->cap * sizeof(*s->items) : 0) +
	       (n > s->n_free ? block_ids(s, n) * sizeof(uint32_t) : 0);
}

size_t profile_stacks_add_growth(const struct profile_stacks *s, uint32_t n)
{
	return profile_stacks_append_growth(s, n) +
	       (s->len + 1 > s->n_slots / 2 ? ((size_t)s->len + 1) * 2 * sizeof(*s->slots) : 0);
}

void profile_stacks_release(struct profile_stacks *s)
{
	while (s->blocks) {
		struct profile_stacks_block *block = s->blocks;

		s->blocks = block->next;
		free(block);
	}
	free(s->items);
	free(s->slots);
	*s = (struct profile_stacks){0};
}
