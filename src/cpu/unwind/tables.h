/*
 * src/cpu/unwind/tables.h: the unwind tables of files, laid out where BPF reads them.
 *
 * Rows live in chunks of 1 MB, which are made as they are needed and given back when empty; a
 * table takes pieces of chunks. cpu/bpf/shared.h draws the layout. All in all at most
 * CPU_SAMPLER_CHUNKS MB.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cpu/bpf/shared.h"
#include "cpu/unwind/ranges.h"
#include "elf/unwind/unwind.h"

struct cpu_tables; /* opaque */

/* One file's. A zeroed one is empty. */
struct cpu_table {
	uint32_t index;
	uint32_t n_pages;
	uint64_t first_page;
	struct cpu_range *pieces;
	size_t n_pieces;
	uint16_t *rules; /* those that it uses, each once */
	size_t n_rules;
};

/*
 * rules: CPU_SAMPLER_RULES of them, shared with BPF, borrowed. chunks_fd: the map of chunks,
 * borrowed; without one (-1) chunks lie in our own memory.
 */
int cpu_tables_new(struct elf_unwind_rule *rules, int chunks_fd, struct cpu_tables **ret_tables,
		   struct err *err);
void cpu_tables_free(struct cpu_tables *tables); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_tables, cpu_tables_free)

/*
 * A table of the rows that load hands to its sink, ascending. -ENOSPC: there is no room; -E2BIG: a
 * table that we are not willing to hold; -ENOENT: no rows; what load answers.
 */
int cpu_tables_add(struct cpu_tables *tables,
		   int (*load)(void *context, const struct elf_unwind_sink *sink), void *context,
		   struct cpu_table *ret_table);
/* The caller knows that no BPF program reads it any more. */
void cpu_tables_remove(struct cpu_tables *tables, struct cpu_table *table);
/* Gives empty chunks back, all but one. */
void cpu_tables_trim(struct cpu_tables *tables);

/* The words of a chunk as BPF sees them, until the next call; NULL when there is no such chunk. */
const uint32_t *cpu_tables_chunk(struct cpu_tables *tables, uint32_t number);
/* Chunks stay mapped until then, a few at a time. */
void cpu_tables_unmap(struct cpu_tables *tables);
