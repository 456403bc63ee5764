/* src/base/map.c: open addressing with linear probing; at most three quarters full. */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Free slots have this key; the value stored under it is kept outside the slots. */
#define MAP_FREE UINT64_MAX

struct map_slot {
	uint64_t key;
	uint64_t value;
};

static struct map_slot *map_slot_for(const struct map *m, uint64_t key)
{
	size_t i = hash_u64(key) & (m->cap - 1);

	while (m->slots[i].key != MAP_FREE && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

static int map_grow(struct map *m)
{
	struct map bigger = *m;

	bigger.cap = m->cap ? m->cap * 2 : 16;
	bigger.slots = malloc(bigger.cap * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	memset(bigger.slots, 0xff, bigger.cap * sizeof(*bigger.slots));
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].key != MAP_FREE)
			*map_slot_for(&bigger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value)
{
	const struct map_slot *slot;

	if (key == MAP_FREE) {
		if (m->has_last)
			*ret_value = m->last;
		return m->has_last;
	}
	if (m->cap == 0)
		return false;
	slot = map_slot_for(m, key);
	if (slot->key == MAP_FREE)
		return false;
	*ret_value = slot->value;
	return true;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
	struct map_slot *slot;
	int r;

	if (key == MAP_FREE) {
		m->len += !m->has_last;
		m->has_last = true;
		m->last = value;
		return 0;
	}
	if ((m->len + 1) * 4 > m->cap * 3) {
		r = map_grow(m);
		if (r < 0)
			return r;
	}
	slot = map_slot_for(m, key);
	m->len += slot->key == MAP_FREE;
	*slot = (struct map_slot){.key = key, .value = value};
	return 0;
}

void map_release(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}
