/* src/cpu/unwind/shares.c: see shares.h. */
#include "cpu/unwind/shares.h"

#include "base/hash.h"

static uint32_t shares_slot(uid_t uid)
{
	return (uint32_t)(hash_u64(uid) % CPU_SHARES_USERS);
}

static uint32_t shares_held(const struct cpu_shares *s, uid_t uid)
{
	return uid == 0 ? s->by_root : s->by_users[shares_slot(uid)];
}

bool cpu_shares_allow(const struct cpu_shares *s, uid_t uid, uint32_t n)
{
	uint64_t used = (uint64_t)s->used + n, held = (uint64_t)shares_held(s, uid) + n;

	return used + held <= (uid == 0 ? s->max : s->max - s->max / 4);
}

bool cpu_shares_are_short(const struct cpu_shares *s, uid_t uid)
{
	return !cpu_shares_allow(s, uid, shares_held(s, uid) / 4 + 1);
}

void cpu_shares_take(struct cpu_shares *s, uid_t uid, uint32_t n)
{
	s->used += n;
	*(uid == 0 ? &s->by_root : &s->by_users[shares_slot(uid)]) += n;
}

void cpu_shares_give(struct cpu_shares *s, uid_t uid, uint32_t n)
{
	s->used -= n;
	*(uid == 0 ? &s->by_root : &s->by_users[shares_slot(uid)]) -= n;
}
