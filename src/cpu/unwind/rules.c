/* src/cpu/unwind/rules.c: see rules.h. */
#include "cpu/unwind/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cpu/unwind/shares.h"

#define RULES_BUCKETS CPU_SAMPLER_RULES

struct cpu_rules {
	struct elf_unwind_rule *shared;
	uint32_t users[CPU_SAMPLER_RULES];
	uint16_t next[CPU_SAMPLER_RULES]; /* in the bucket, or in the free list; 0 ends */
	uint16_t buckets[RULES_BUCKETS];
	uint16_t free;
	struct cpu_shares shares;
	uid_t uids[CPU_SAMPLER_RULES]; /* who has it in its share */
};

struct cpu_rules *cpu_rules_new(struct elf_unwind_rule *shared)
{
	struct cpu_rules *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->shared = shared;
	memset(&shared[0], 0, sizeof(shared[0]));
	r->free = 1;
	r->shares.max = CPU_SAMPLER_RULES - 1;
	for (uint32_t i = 1; i + 1 < CPU_SAMPLER_RULES; i++)
		r->next[i] = (uint16_t)(i + 1);
	return r;
}

void cpu_rules_free(struct cpu_rules *r)
{
	free(r);
}

static uint16_t *rules_bucket(struct cpu_rules *r, const struct elf_unwind_rule *rule)
{
	uint64_t bits;

	_Static_assert(sizeof(bits) == sizeof(*rule), "a rule is compared as one word");
	memcpy(&bits, rule, sizeof(bits));
	return &r->buckets[hash_u64(bits) % RULES_BUCKETS];
}

int cpu_rules_take(struct cpu_rules *r, uid_t uid, const struct elf_unwind_rule *rule,
		   uint16_t *ret_number)
{
	uint16_t *bucket, n;

	if (rule->cfa == ELF_UNWIND_NONE) {
		*ret_number = 0;
		return 0;
	}
	bucket = rules_bucket(r, rule);
	for (n = *bucket; n; n = r->next[n])
		if (memcmp(&r->shared[n], rule, sizeof(*rule)) == 0)
			break;
	if (!n) {
		n = r->free;
		if (!n)
			return -ENOSPC;
		if (!cpu_shares_allow(&r->shares, uid, 1))
			return -EDQUOT;
		cpu_shares_take(&r->shares, uid, 1);
		r->uids[n] = uid;
		r->free = r->next[n];
		r->shared[n] = *rule;
		r->next[n] = *bucket;
		*bucket = n;
	}
	r->users[n]++;
	*ret_number = n;
	return 0;
}

void cpu_rules_give(struct cpu_rules *r, uint16_t number)
{
	uint16_t *at;

	if (!number || --r->users[number])
		return;
	at = rules_bucket(r, &r->shared[number]);
	while (*at != number)
		at = &r->next[*at];
	cpu_shares_give(&r->shares, r->uids[number], 1);
	*at = r->next[number];
	r->next[number] = r->free;
	r->free = number;
}

bool cpu_rules_are_short(const struct cpu_rules *r, uid_t uid)
{
	return cpu_shares_are_short(&r->shares, uid);
}
