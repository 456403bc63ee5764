/*
 * src/cpu/unwind/rules.h: gives equal unwind rules equal small numbers, which rows carry.
 *
 * A whole machine has about two thousand different rules. They are counted by the files that use
 * them, so that a forged file cannot use the numbers up for good. Number 0 is ELF_UNWIND_NONE.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "cpu/bpf/shared.h"

struct cpu_rules; /* opaque */

/* shared: CPU_SAMPLER_RULES of them, where BPF reads them; borrowed. NULL without memory. */
struct cpu_rules *cpu_rules_new(struct elf_unwind_rule *shared);
void cpu_rules_free(struct cpu_rules *rules); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_rules, cpu_rules_free)

/* Counts one more user. -ENOSPC when all numbers are taken. */
int cpu_rules_take(struct cpu_rules *rules, const struct elf_unwind_rule *rule,
		   uint16_t *ret_number);
void cpu_rules_give(struct cpu_rules *rules, uint16_t number);
