/* src/store/metrics/damage.h: the damaged blocks that a reader found, so that each counts once. */
#pragma once

#include <stdint.h>

#include "base/hash.h"
#include "store/sqlite/day.h"

#define STORE_DAMAGE_MAX 64 /* distinct blocks per call */

struct store_damage {
	size_t n;
	uint64_t where[STORE_DAMAGE_MAX]; /* hashes of day, table and key */
};

/* sql identifies the table. */
static inline void store_damage_add(struct store_damage *d, const struct store_day *day,
				    enum store_day_sql sql, int64_t key)
{
	uint64_t where = hash_mix(hash_u64((uint64_t)day->number << 8 | sql) + (uint64_t)key);

	if (d->n < STORE_DAMAGE_MAX)
		d->where[d->n++] = where;
}
