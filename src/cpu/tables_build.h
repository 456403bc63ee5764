/* src/cpu/tables_build.h: turns rows into pages and words, in our own memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cpu/tables_rules.h"
#include "elf/unwind.h"

/* Text that one table may span, in pages: an index has to fit into a chunk. */
#define TABLE_PAGES_MAX (SAMPLER_CHUNK_WORDS / 4)

struct table_page {
	uint32_t first; /* in words */
	uint32_t n;
};

/* A zeroed one is empty. Holds a use of each rule until release, unless rules were taken away. */
struct table_build {
	uint64_t first_page;
	struct table_page *pages;
	size_t n_pages;
	uint32_t *words;
	size_t n_words;
	size_t cap_words;
	uint16_t *rules;
	size_t n_rules;
	size_t cap_rules;
	uint64_t seen[SAMPLER_RULES / 64];
};

int table_build(struct table_build *build, struct cpu_rules *rules, const struct unwind_row *rows,
		size_t n_rows, struct err *err);
void table_build_release(struct table_build *build, struct cpu_rules *rules);
