/* src/cpu/unwind/table_build.h: turns rows into pages and words, in our own memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/unwind/rules.h"
#include "elf/unwind/unwind.h"

/* The maximum span of a table's code, in pages: its index must fit into a chunk. */
#define CPU_TABLE_PAGES_MAX (CPU_SAMPLER_CHUNK_WORDS / 4)

struct cpu_table_page {
	uint32_t first; /* in words */
	uint32_t n;
};

/*
 * Empty if zeroed, except for the rules and the user. Holds a reference to each rule until release,
 * unless rules were moved out.
 */
struct cpu_table_build {
	struct cpu_rules *all; /* borrowed */
	uid_t uid;	       /* whose share new rules are of */
	uint64_t first_page;
	struct cpu_table_page *pages;
	size_t n_pages;
	size_t cap_pages;
	uint32_t *words;
	size_t n_words;
	size_t cap_words;
	uint16_t *rules;
	size_t n_rules;
	size_t cap_rules;
	uint64_t seen[CPU_SAMPLER_RULES / 64];
	struct elf_unwind_row last; /* not added yet: that depends on the next one */
	bool has_last;
	uint16_t rule; /* the one in effect before it */
};

/*
 * Rows, ascending over all calls. -EBADMSG if they are not; -E2BIG: more code or rules than a file
 * may have; -ENOSPC, -EDQUOT: no room for another rule.
 */
int cpu_table_build_rows(struct cpu_table_build *build, const struct elf_unwind_row *rows,
			 size_t n_rows);
/* Call after the last row. -ENOENT: there were none. */
int cpu_table_build_finish(struct cpu_table_build *build);
void cpu_table_build_release(struct cpu_table_build *build);
