/* src/store/sqlite/seal.c: see seal.h. */
#include "store/sqlite/seal.h"

#include <endian.h>
#include <string.h>

#include "base/crc.h"

#define SEALED (STORE_SEAL_PAGE - STORE_SEAL_BYTES)

static uint32_t get_le32(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return le32toh(word);
}

static void put_le32(uint8_t *at, uint32_t word)
{
	word = htole32(word);
	memcpy(at, &word, sizeof(word));
}

static uint32_t first_sum(const uint8_t *page, uint32_t number)
{
	return crc32c(view_of(page, SEALED)) ^ number;
}

/* Only looked at where the first does not fit. Not linear, unlike that. */
static uint32_t second_sum(const uint8_t *page, uint32_t number)
{
	uint64_t sum = ~(uint64_t)number, word;

	for (size_t i = 0; i < SEALED; i += sizeof(word)) {
		memcpy(&word, page + i, sizeof(word));
		sum = (sum ^ le64toh(word)) * 0xd6e8feb86659fd93ULL;
		sum ^= sum >> 32;
	}
	return (uint32_t)sum;
}

void store_seal_page(uint8_t page[STORE_SEAL_PAGE], uint32_t number)
{
	put_le32(page + SEALED, first_sum(page, number));
	put_le32(page + SEALED + 4, second_sum(page, number));
}

/*
 * A flipped bit changes the CRC by a value that only depends on its place: no two places have the
 * same. Goes back from the end; each byte on the way is one more step of the CRC over zeros.
 */
static bool find_flip(uint32_t change, size_t *ret_byte, unsigned int *ret_bit)
{
	uint32_t steps[256], of_bit[8];
	uint8_t byte = 0;
	uint32_t of_zero = crc32c(view_of(&byte, 1));

	for (unsigned int i = 0; i < 256; i++) {
		byte = (uint8_t)i;
		steps[i] = crc32c(view_of(&byte, 1)) ^ of_zero;
	}
	for (unsigned int i = 0; i < 8; i++)
		of_bit[i] = steps[1U << i];
	for (size_t at = SEALED; at-- > 0;) {
		for (unsigned int i = 0; i < 8; i++) {
			if (of_bit[i] == change) {
				*ret_byte = at;
				*ret_bit = i;
				return true;
			}
			of_bit[i] = of_bit[i] >> 8 ^ steps[of_bit[i] & 0xff];
		}
	}
	return false;
}

enum store_seal store_seal_check_page(uint8_t page[STORE_SEAL_PAGE], uint32_t number, bool search)
{
	uint32_t change = first_sum(page, number) ^ get_le32(page + SEALED);
	uint32_t second = get_le32(page + SEALED + 4);
	unsigned int bit = 0;
	size_t at = 0;

	if (change == 0)
		return STORE_SEAL_WHOLE;
	/* In the sum itself. */
	if ((change & (change - 1)) == 0 && second_sum(page, number) == second) {
		store_seal_page(page, number);
		return STORE_SEAL_CORRECTED;
	}
	if (!search || !find_flip(change, &at, &bit))
		return STORE_SEAL_BROKEN;
	page[at] ^= (uint8_t)(1U << bit);
	if (second_sum(page, number) == second)
		return STORE_SEAL_CORRECTED;
	page[at] ^= (uint8_t)(1U << bit);
	return STORE_SEAL_BROKEN;
}

/* --- the log */

#define LOG_MAGIC 0x377f0682U /* and 1: the sums are of big-endian words */
#define LOG_VERSION 3007000U
#define LOG_SALTS 16 /* in the head */
#define LOG_HEAD_SUMS 24
#define FRAME_SALTS 8
#define FRAME_SUMS 16
#define FRAME_SUMMED 8 /* of its head */

static uint32_t get_be32(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return be32toh(word);
}

static void put_be32(uint8_t *at, uint32_t word)
{
	word = htobe32(word);
	memcpy(at, &word, sizeof(word));
}

struct sums {
	uint32_t a;
	uint32_t b;
};

static struct sums get_sums(const uint8_t *at)
{
	return (struct sums){get_be32(at), get_be32(at + 4)};
}

/* len: a multiple of 8. Two loops: this is most of what checking a frame costs. */
static struct sums add_words(struct sums s, const uint8_t *data, size_t len, bool big)
{
	uint32_t a = s.a, b = s.b;

	for (size_t i = 0; big && i < len; i += 8) {
		a += get_be32(data + i) + b;
		b += get_be32(data + i + 4) + a;
	}
	for (size_t i = 0; !big && i < len; i += 8) {
		a += get_le32(data + i) + b;
		b += get_le32(data + i + 4) + a;
	}
	return (struct sums){a, b};
}

static bool is_head(const uint8_t *head)
{
	bool big = head[3] & 1;
	struct sums s = add_words((struct sums){0, 0}, head, LOG_HEAD_SUMS, big);
	struct sums stored = get_sums(head + LOG_HEAD_SUMS);

	return (get_be32(head) & ~1U) == LOG_MAGIC && get_be32(head + 4) == LOG_VERSION &&
	       s.a == stored.a && s.b == stored.b;
}

enum store_seal store_seal_check_log(uint8_t head[STORE_SEAL_LOG_HEAD])
{
	unsigned int bit = 0, n = 0;

	if (is_head(head))
		return STORE_SEAL_WHOLE;
	for (unsigned int i = 0; i < STORE_SEAL_LOG_HEAD * 8U; i++) {
		head[i / 8] ^= (uint8_t)(1U << i % 8);
		if (is_head(head) && n++ == 0)
			bit = i;
		head[i / 8] ^= (uint8_t)(1U << i % 8);
	}
	if (n != 1)
		return n > 1 ? STORE_SEAL_FLIPPED : STORE_SEAL_BROKEN;
	head[bit / 8] ^= (uint8_t)(1U << bit % 8);
	return STORE_SEAL_CORRECTED;
}

/* Whether a word that changes by this much changes in one bit. */
static bool is_one_bit(const uint8_t *at, uint32_t change, bool big)
{
	uint32_t word = big ? get_be32(at) : get_le32(at);
	uint32_t flipped = (word + change) ^ word;

	return flipped != 0 && (flipped & (flipped - 1)) == 0;
}

static void change_word(uint8_t *at, uint32_t change, bool big)
{
	if (big)
		put_be32(at, get_be32(at) + change);
	else
		put_le32(at, get_le32(at) + change);
}

/* The words of a pair of the sums: of the head, then of the page. */
static uint8_t *pair_at(uint8_t *frame, size_t i)
{
	return i == 0 ? frame : frame + STORE_SEAL_FRAME_HEAD + (i - 1) * 8;
}

/* The bits that explain what the sums lack. */
struct suspects {
	struct sums lack;
	bool big;
	unsigned int n;
	uint8_t *at; /* of the first: its word, and what it should change by */
	uint32_t change;
};

/* A word that counts so much in both sums. */
static void suspect_word(struct suspects *s, uint8_t *at, struct sums weight)
{
	for (unsigned int bit = 0; bit < 64; bit++) {
		uint32_t change = bit < 32 ? 1U << bit : -(1U << (bit - 32));

		/* Both signs of the highest bit are the same. */
		if (bit == 63 || weight.a * change != s->lack.a || weight.b * change != s->lack.b ||
		    !is_one_bit(at, change, s->big))
			continue;
		if (s->n++ == 0) {
			s->at = at;
			s->change = change;
		}
	}
}

/*
 * The sums are linear: each word counts in both, the earlier the more. High bits of early words
 * leave too little of themselves to be told from others.
 */
static void suspect_frame(struct suspects *s, uint8_t *frame)
{
	struct sums even = {1, 1}, odd = {0, 1};

	for (size_t i = 1 + STORE_SEAL_PAGE / 8; i-- > 0;) {
		suspect_word(s, pair_at(frame, i), even);
		suspect_word(s, pair_at(frame, i) + 4, odd);
		even.a += even.b;
		even.b += even.a;
		odd.a += odd.b;
		odd.b += odd.a;
	}
}

static unsigned int count_bits(uint32_t a, uint32_t b)
{
	return (unsigned int)__builtin_popcount(a) + (unsigned int)__builtin_popcount(b);
}

/* What a frame of an earlier round of the log looks like, too: nothing fits. */
static enum store_seal check_salts(const uint8_t *head, uint8_t *frame)
{
	struct sums salts = get_sums(head + LOG_SALTS), own = get_sums(frame + FRAME_SALTS);
	unsigned int bits = count_bits(salts.a ^ own.a, salts.b ^ own.b);

	if (bits > 1)
		return STORE_SEAL_BROKEN;
	memcpy(frame + FRAME_SALTS, head + LOG_SALTS, 8);
	return bits == 0 ? STORE_SEAL_WHOLE : STORE_SEAL_CORRECTED;
}

enum store_seal store_seal_check_frame(const uint8_t head[STORE_SEAL_LOG_HEAD],
				       const uint8_t before[8], uint8_t frame[STORE_SEAL_FRAME])
{
	bool big = head[3] & 1;
	struct sums stored = get_sums(frame + FRAME_SUMS);
	struct sums s = add_words(get_sums(before), frame, FRAME_SUMMED, big);
	struct suspects suspects = {.big = big};
	enum store_seal salts = check_salts(head, frame);
	unsigned int in_sums;

	s = add_words(s, frame + STORE_SEAL_FRAME_HEAD, STORE_SEAL_PAGE, big);
	if (salts == STORE_SEAL_BROKEN || (s.a == stored.a && s.b == stored.b))
		return salts;
	suspects.lack = (struct sums){stored.a - s.a, stored.b - s.b};
	suspect_frame(&suspects, frame);
	in_sums = count_bits(s.a ^ stored.a, s.b ^ stored.b) == 1;
	if (suspects.n + in_sums != 1 || salts != STORE_SEAL_WHOLE)
		return suspects.n + in_sums > 0 ? STORE_SEAL_FLIPPED : STORE_SEAL_BROKEN;
	if (in_sums) {
		put_be32(frame + FRAME_SUMS, s.a);
		put_be32(frame + FRAME_SUMS + 4, s.b);
	} else {
		change_word(suspects.at, suspects.change, big);
	}
	return STORE_SEAL_CORRECTED;
}
