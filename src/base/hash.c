/* src/base/hash.c: see hash.h. */
#include "base/hash.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t seed;
static uint64_t second_seed;

__attribute__((constructor)) static void hash_init(void)
{
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint64_t)clock() ^ (uintptr_t)&seed;
	second_seed = hash_mix(seed + 1);
}

uint64_t hash_seed(void)
{
	return seed;
}

/* An attacker who knew both factors could zero one of them, and erase everything hashed before. */
static inline uint64_t hash_step(uint64_t h, uint64_t a, uint64_t b)
{
	return hash_fold(a ^ h, b ^ second_seed);
}

static inline uint64_t load_u64(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static inline uint64_t load_u32(const uint8_t *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* 16 bytes per step. The last step may overlap the previous one: the length is part of the hash. */
uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	/* Not the length itself: bytes that differ by it would cancel it out. */
	uint64_t h = hash_fold(seed ^ len, second_seed);

	if (len >= 16) {
		for (const uint8_t *last = p + len - 16; p < last; p += 16)
			h = hash_step(h, load_u64(p), load_u64(p + 8));
		p = (const uint8_t *)data + len - 16;
		return hash_step(h, load_u64(p), load_u64(p + 8));
	}
	if (len >= 8)
		return hash_step(h, load_u64(p), load_u64(p + len - 8));
	if (len >= 4)
		return hash_step(h, load_u32(p), load_u32(p + len - 4));
	if (len > 0)
		return hash_step(h, p[0], (uint64_t)p[len / 2] << 8 | p[len - 1]);
	return hash_step(h, 0, 0);
}
