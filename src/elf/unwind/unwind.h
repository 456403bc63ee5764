/*
 * src/elf/unwind/unwind.h: a file's unwind information (.eh_frame, else .debug_frame), compiled
 * into rows sorted by address. x86-64; -ENOTSUP for other machines.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/image.h"
#include "elf/unwind/rule.h"

/* Holds from its address up to the next row's. */
struct elf_unwind_row {
	uint64_t vaddr; /* link-time */
	struct elf_unwind_rule rule;
};

/* Empty if zeroed. Rows with equal rules are merged; gaps are rows of ELF_UNWIND_NONE. */
struct elf_unwind_table {
	struct elf_unwind_row *rows;
	size_t n_rows;
	uint64_t *starts; /* of functions, ascending: names those without symbols */
	size_t n_starts;
	uint64_t n_unsupported; /* functions with unsupported rules */
	uint64_t n_damaged;	/* invalid entries, skipped */
};

/*
 * Receives rows a few thousand at a time, ascending over all calls; a negative result ends it all.
 * During long work also called without rows, so that the caller can do other work.
 */
struct elf_unwind_sink {
	int (*rows)(void *context, const struct elf_unwind_row *rows, size_t n);
	void *context;
};

/* Link-time addresses, from included, to excluded. */
struct elf_unwind_range {
	uint64_t from, to;
};

/*
 * Streams all rows, with only a few in memory at a time. range: only those of functions that reach
 * into it, of which a large file need not be read as a whole; NULL: all. -ENOENT: the file has no
 * unwind information; -E2BIG: too much of it; or the sink's error.
 */
int elf_unwind_stream(const struct elf_image *image, const struct elf_unwind_range *range,
		      const struct elf_unwind_sink *sink, struct err *err);
void elf_unwind_table_release(struct elf_unwind_table *table);
