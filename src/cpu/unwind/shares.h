/*
 * src/cpu/unwind/shares.h: divides a scarce table between users.
 *
 * Nobody may hold more than is left for others: the first half of it, the second a quarter, and so
 * on. The last quarter of it is root's alone; root in a container counts as root. Users are told
 * apart by a hash, so that nothing need be remembered of them: now and then two have one share.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CPU_SHARES_USERS 1024U

/* Nothing is taken if zeroed but for max. */
struct cpu_shares {
	uint32_t max;
	uint32_t used;
	uint32_t by_root;
	uint32_t by_users[CPU_SHARES_USERS];
};

/* Whether the user may take n more. */
bool cpu_shares_allow(const struct cpu_shares *shares, uid_t uid, uint32_t n);
/* Whether it should keep nothing that it does not need. */
bool cpu_shares_are_short(const struct cpu_shares *shares, uid_t uid);
void cpu_shares_take(struct cpu_shares *shares, uid_t uid, uint32_t n); /* if allowed */
void cpu_shares_give(struct cpu_shares *shares, uid_t uid, uint32_t n); /* what was taken */
