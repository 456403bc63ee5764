/*
 * src/store/sqlite/ids.h: maps the hash of a frame or stack to its id, by open addressing. Only
 * hashes are kept, not the contents: they have 64 bits, are odd, and depend on a secret of this
 * process, so they cannot be forged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 12 bytes, within one cache line; both halves are 0 if the slot is free. */
struct store_ids_place {
	uint32_t hash[2];
	uint32_t id;
};

/* A zeroed struct store_ids is empty. */
struct store_ids {
	struct store_ids_place *places;
	uint32_t cap; /* a power of two, or 0 */
	uint32_t len;
};

int store_ids_reserve(struct store_ids *t, uint32_t n);		    /* room for n in all; -ENOMEM */
int store_ids_put(struct store_ids *t, uint64_t hash, uint32_t id); /* replaces; -ENOMEM */
void store_ids_release(struct store_ids *t);

static inline struct store_ids_place *store_ids_place(const struct store_ids *t, uint64_t hash)
{
	uint32_t low = (uint32_t)hash, high = (uint32_t)(hash >> 32);
	uint32_t i = high & (t->cap - 1);

	/* Hashes are odd: half of one tells whether the slot is free. */
	while (t->places[i].hash[0] != 0 &&
	       (t->places[i].hash[0] != low || t->places[i].hash[1] != high))
		i = (i + 1) & (t->cap - 1);
	return &t->places[i];
}

static inline bool store_ids_get(const struct store_ids *t, uint64_t hash, uint32_t *ret_id)
{
	const struct store_ids_place *place;

	if (t->cap == 0)
		return false;
	place = store_ids_place(t, hash);
	if (place->hash[0] == 0)
		return false;
	*ret_id = place->id;
	return true;
}

/* Takes a free slot; there must be room. */
static inline void store_ids_fill(struct store_ids *t, struct store_ids_place *place, uint64_t hash,
				  uint32_t id)
{
	*place = (struct store_ids_place){{(uint32_t)hash, (uint32_t)(hash >> 32)}, id};
	t->len++;
}

/* A prefetch: the table exceeds the CPU cache, and waiting is most of a lookup. */
static inline void store_ids_expect(const struct store_ids *t, uint64_t hash)
{
	if (t->cap > 0)
		__builtin_prefetch(&t->places[(uint32_t)(hash >> 32) & (t->cap - 1)]);
}
