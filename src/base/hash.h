/* src/base/hash.h: hashes for in-memory tables, keyed by a secret of this process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Drawn once at start. What we hash comes from possibly hostile targets, which must not be able to
 * choose colliding keys.
 */
uint64_t hash_seed(void);

static inline uint64_t hash_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	return x;
}

/* The product with its halves folded: good mixing for one multiplication. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_u64(uint64_t key)
{
	return hash_mix(key ^ hash_seed());
}

uint64_t hash_bytes(const void *data, size_t len);
