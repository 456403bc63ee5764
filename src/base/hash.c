/* src/base/hash.c: see hash.h. */
#include "base/hash.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t seed;

__attribute__((constructor)) static void hash_init(void)
{
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint64_t)clock() ^ (uintptr_t)&seed;
}

uint64_t hash_seed(void)
{
	return seed;
}

uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = seed ^ len;
	uint64_t word;

	while (len >= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = hash_mix(h ^ word);
		p += sizeof(word);
		len -= sizeof(word);
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return hash_mix(h ^ word ^ ((uint64_t)len << 56));
}
