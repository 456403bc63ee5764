/* src/cpu/budget.c: see budget.h. */
#include "cpu/budget.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"

/* Stacks and names remembered, twice. */
#define SEEN_MAX ((size_t)128 << 10)
/* Users with their own budget; the rest share one. */
#define USERS_MAX 256

struct limit {
	uint64_t burst;
	uint64_t per_hour;
};

/*
 * A compiler that is sampled for the first time has some ten thousand distinct stacks; most
 * services have hundreds. Most services are root's.
 */
static const struct limit of_process[CPU_BUDGET_N] = {
	[CPU_BUDGET_STACKS] = {.burst = 16384, .per_hour = 3600},
	[CPU_BUDGET_NAMES] = {.burst = 32768, .per_hour = 3600},
};
static const struct limit of_user[CPU_BUDGET_N] = {
	[CPU_BUDGET_STACKS] = {.burst = 65536, .per_hour = 7200},
	[CPU_BUDGET_NAMES] = {.burst = 65536, .per_hour = 7200},
};
static const struct limit of_root[CPU_BUDGET_N] = {
	[CPU_BUDGET_STACKS] = {.burst = 524288, .per_hour = 57600},
	[CPU_BUDGET_NAMES] = {.burst = 524288, .per_hour = 57600},
};

struct cpu_budget {
	struct map users; /* uid -> place */
	struct cpu_allowance allowances[USERS_MAX];
	/* Hashes seen; when the young ones are many, they become the old ones. */
	struct map young, old;
};

struct cpu_budget *cpu_budget_new(void)
{
	return calloc(1, sizeof(struct cpu_budget));
}

void cpu_budget_free(struct cpu_budget *b)
{
	if (!b)
		return;
	map_release(&b->users);
	map_release(&b->young);
	map_release(&b->old);
	free(b);
}

static struct cpu_allowance *user_allowance(struct cpu_budget *b, uint32_t uid)
{
	uint64_t at;

	if (map_get(&b->users, uid, &at))
		return &b->allowances[at];
	at = b->users.len < USERS_MAX - 1 ? b->users.len : USERS_MAX - 1;
	if (at == USERS_MAX - 1 || map_put(&b->users, uid, at) < 0)
		at = USERS_MAX - 1;
	return &b->allowances[at];
}

/* Whether there is enough for one more, after refilling. */
static bool allowance_has(struct cpu_allowance *a, const struct limit *limit,
			  enum cpu_budget_kind kind, uint64_t now_ns)
{
	uint64_t price_ns = 3600 * NS_PER_SEC / limit->per_hour;
	/* Profiles of one interval begin at different times: it may go back. */
	uint64_t passed_ns = now_ns > a->at_ns[kind] ? now_ns - a->at_ns[kind] : 0;

	a->at_ns[kind] += passed_ns;
	a->spent_ns[kind] -= MIN(passed_ns, a->spent_ns[kind]);
	return a->spent_ns[kind] + price_ns <= limit->burst * price_ns;
}

static void allowance_spend(struct cpu_allowance *a, const struct limit *limit,
			    enum cpu_budget_kind kind)
{
	a->spent_ns[kind] += 3600 * NS_PER_SEC / limit->per_hour;
}

static bool was_seen(struct cpu_budget *b, uint64_t key)
{
	return map_get(&b->young, key, &(uint64_t){0}) || map_get(&b->old, key, &(uint64_t){0});
}

static void remember(struct cpu_budget *b, uint64_t key)
{
	if (map_get(&b->young, key, &(uint64_t){0}))
		return;
	if (b->young.len >= SEEN_MAX) {
		map_release(&b->old);
		b->old = b->young;
		b->young = (struct map){0};
	}
	/* If out of memory, it is new again next time. */
	(void)map_put(&b->young, key, 1);
}

bool cpu_budget_take(struct cpu_budget *b, const struct cpu_owner *owner, enum cpu_budget_kind kind,
		     uint64_t hash, uint64_t now_ns)
{
	/* What one user has added is still new for another. */
	uint64_t key = hash_mix(hash ^ hash_u64((uint64_t)kind << 32 | owner->uid));
	const struct limit *user_limit = owner->uid ? &of_user[kind] : &of_root[kind];
	struct cpu_allowance *user = user_allowance(b, owner->uid);

	if (!was_seen(b, key)) {
		if (!allowance_has(owner->process, &of_process[kind], kind, now_ns) ||
		    !allowance_has(user, user_limit, kind, now_ns))
			return false;
		allowance_spend(owner->process, &of_process[kind], kind);
		allowance_spend(user, user_limit, kind);
	}
	remember(b, key);
	return true;
}
