/* src/base/map.c: open addressing with linear probing; at most two thirds full. */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

struct map_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

static struct map_slot *map_slot_for(const struct map *m, uint64_t key)
{
	size_t i = hash_u64(key) & (m->cap - 1);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

static int map_grow(struct map *m)
{
	struct map bigger = {.cap = m->cap ? m->cap * 2 : 16, .len = m->len};

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			*map_slot_for(&bigger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value)
{
	const struct map_slot *slot;

	if (m->cap == 0)
		return false;
	slot = map_slot_for(m, key);
	if (!slot->used)
		return false;
	*ret_value = slot->value;
	return true;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
	struct map_slot *slot;
	int r;

	if ((m->len + 1) * 3 > m->cap * 2) {
		r = map_grow(m);
		if (r < 0)
			return r;
	}
	slot = map_slot_for(m, key);
	if (!slot->used)
		m->len++;
	*slot = (struct map_slot){.key = key, .value = value, .used = true};
	return 0;
}

void map_release(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}
