/*
 * src/cpu/budget.h: limits how many new stacks and names processes and users add.
 *
 * What is kept of a profile grows with what is new in it, and a program can make up stacks and
 * names as fast as it is sampled. Known ones are free. A new one takes from two budgets, that of
 * its process and that of its user, which are large and refill slowly. What they do not cover is
 * shown as "(other)". Which ones are known is remembered within a limit, the latest ones best. One
 * thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

enum cpu_budget_kind {
	CPU_BUDGET_STACKS,
	CPU_BUDGET_NAMES,
	CPU_BUDGET_N,
};

/* What a process, or a user, may still add. Full if zeroed. */
struct cpu_allowance {
	uint64_t spent_ns[CPU_BUDGET_N]; /* each one costs the time in which one is refilled */
	uint64_t at_ns[CPU_BUDGET_N];
};

struct cpu_budget; /* opaque */

/* NULL if out of memory. */
struct cpu_budget *cpu_budget_new(void);
void cpu_budget_free(struct cpu_budget *budget); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_budget, cpu_budget_free)

/* Whose budgets: process is borrowed. */
struct cpu_owner {
	struct cpu_allowance *process;
	uint32_t uid; /* one for all ids of a user (proc/subuid.h) */
};

/* Whether what has this hash may be added now. now_ns: by the monotonic clock, roughly. */
bool cpu_budget_take(struct cpu_budget *budget, const struct cpu_owner *owner,
		     enum cpu_budget_kind kind, uint64_t hash, uint64_t now_ns);
