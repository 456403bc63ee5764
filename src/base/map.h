/* src/base/map.h: a hash map from 64-bit keys to 64-bit values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot;

/* A zeroed struct map is an empty map. */
struct map {
	struct map_slot *slots;
	size_t cap; /* a power of two, or 0 */
	size_t len;
	uint64_t last; /* value of the largest key, which has no slot */
	bool has_last;
};

bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value);
int map_put(struct map *m, uint64_t key, uint64_t value); /* replaces; -ENOMEM */
void map_release(struct map *m);
