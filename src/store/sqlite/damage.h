/* src/store/sqlite/damage.h: what is damaged in a day file, so that each place counts once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STORE_DAMAGE_MAX 64 /* distinct places per call */

struct store_damage {
	uint64_t found; /* all, also those not kept, or met twice */
	size_t n;
	uint64_t where[STORE_DAMAGE_MAX]; /* hashes of file, table and key */
};
