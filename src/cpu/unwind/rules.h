/*
 * src/cpu/unwind/rules.h: assigns small numbers to distinct unwind rules, for use in rows.
 *
 * A whole machine has about two thousand distinct rules. They are reference-counted by the files
 * that use them, so that a forged file cannot use up the numbers for good. Who needed a rule first
 * has it in its share (shares.h). Number 0 is ELF_UNWIND_NONE.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "cpu/bpf/shared.h"

struct cpu_rules; /* opaque */

/* shared: CPU_SAMPLER_RULES entries, where BPF reads them; borrowed. NULL if out of memory. */
struct cpu_rules *cpu_rules_new(struct elf_unwind_rule *shared);
void cpu_rules_free(struct cpu_rules *rules); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_rules, cpu_rules_free)

/* Takes a reference. -ENOSPC if all numbers are in use; -EDQUOT: too many are this user's. */
int cpu_rules_take(struct cpu_rules *rules, uid_t uid, const struct elf_unwind_rule *rule,
		   uint16_t *ret_number);
void cpu_rules_give(struct cpu_rules *rules, uint16_t number);
bool cpu_rules_are_short(const struct cpu_rules *rules, uid_t uid); /* as of shares.h */
