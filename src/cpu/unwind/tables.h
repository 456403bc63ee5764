/*
 * src/cpu/unwind/tables.h: the unwind tables of files, laid out where BPF reads them.
 *
 * Rows are in chunks of 1 MB, created on demand and freed when empty; a table takes pieces of
 * chunks. For the layout see cpu/bpf/shared.h. At most CPU_SAMPLER_CHUNKS MB in all, of which each
 * user has a share (shares.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cpu/bpf/shared.h"
#include "cpu/unwind/ranges.h"
#include "elf/unwind/unwind.h"

struct cpu_tables; /* opaque */

/* The table of one file. Empty if zeroed. */
struct cpu_table {
	uid_t uid; /* who has it in its share */
	uint32_t index;
	uint32_t n_pages;
	uint64_t first_page;
	struct cpu_range *pieces;
	size_t n_pieces;
	uint16_t *rules; /* those it uses, each once */
	size_t n_rules;
};

/*
 * rules: CPU_SAMPLER_RULES entries, shared with BPF, borrowed. chunks_fd: the map of chunks,
 * borrowed; if -1, chunks are in our own memory.
 */
int cpu_tables_new(struct elf_unwind_rule *rules, int chunks_fd, struct cpu_tables **ret_tables,
		   struct err *err);
void cpu_tables_free(struct cpu_tables *tables); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_tables, cpu_tables_free)

/*
 * Adds a table of the rows that load passes to its sink, ascending. -ENOSPC: no room; -EDQUOT: no
 * room in this user's share; -E2BIG: too large; -ENOENT: no rows; or the error of load.
 */
int cpu_tables_add(struct cpu_tables *tables, uid_t uid,
		   int (*load)(void *context, const struct elf_unwind_sink *sink), void *context,
		   struct cpu_table *ret_table);
/* The caller must know that no BPF program reads it any more. */
void cpu_tables_remove(struct cpu_tables *tables, struct cpu_table *table);
/* Whether the user should keep no table that it does not need. */
bool cpu_tables_are_short(const struct cpu_tables *tables, uid_t uid);
/* Frees empty chunks, except one. */
void cpu_tables_trim(struct cpu_tables *tables);

/* The words of a chunk as seen by BPF, until the next call; NULL if there is no such chunk. */
const uint32_t *cpu_tables_chunk(struct cpu_tables *tables, uint32_t number);
/* Until then a few chunks stay mapped. */
void cpu_tables_unmap(struct cpu_tables *tables);
