/* src/store/sqlite/ids.c: see ids.h. */
#include "store/sqlite/ids.h"

#include <errno.h>
#include <stdlib.h>

void store_ids_release(struct store_ids *t)
{
	free(t->places);
	*t = (struct store_ids){0};
}

/* At most four fifths full: the tables are most of the writer's memory. */
static bool ids_hold(uint32_t cap, uint32_t n)
{
	return (uint64_t)n * 5 <= (uint64_t)cap * 4;
}

int store_ids_reserve(struct store_ids *t, uint32_t n)
{
	struct store_ids bigger = {.cap = t->cap ? t->cap : 256, .len = t->len};

	if (ids_hold(t->cap, n))
		return 0;
	while (!ids_hold(bigger.cap, n))
		bigger.cap *= 2;

	bigger.places = calloc(bigger.cap, sizeof(*bigger.places));
	if (!bigger.places)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->cap; i++) {
		const struct store_ids_place *p = &t->places[i];

		if (p->hash[0] != 0)
			*store_ids_place(&bigger, (uint64_t)p->hash[1] << 32 | p->hash[0]) = *p;
	}
	store_ids_release(t);
	*t = bigger;
	return 0;
}

int store_ids_put(struct store_ids *t, uint64_t hash, uint32_t id)
{
	struct store_ids_place *place;

	if (store_ids_reserve(t, t->len + 1) < 0)
		return -ENOMEM;
	place = store_ids_place(t, hash);
	t->len += place->hash[0] == 0;
	*place = (struct store_ids_place){{(uint32_t)hash, (uint32_t)(hash >> 32)}, id};
	return 0;
}
