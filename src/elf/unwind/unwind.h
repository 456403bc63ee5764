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

/* Holds from its address to that of the next row. */
struct elf_unwind_row {
	uint64_t vaddr; /* link-time */
	struct elf_unwind_rule rule;
};

/* A zeroed one is empty. Rows with equal rules are joined; gaps are rows of ELF_UNWIND_NONE. */
struct elf_unwind_table {
	struct elf_unwind_row *rows;
	size_t n_rows;
	uint64_t *starts; /* of functions, ascending: names for those without symbols */
	size_t n_starts;
	uint64_t n_unsupported; /* functions with rules that we cannot follow */
	uint64_t n_damaged;	/* entries that made no sense and were left out */
};

/*
 * Takes rows a few thousand at a time, ascending over all calls; a negative answer ends it all.
 * Called without rows now and then where that takes long, for who has other things to do as well.
 */
struct elf_unwind_sink {
	int (*rows)(void *context, const struct elf_unwind_row *rows, size_t n);
	void *context;
};

/*
 * Hands all rows on, of which no more than a few are in memory at a time. -ENOENT: the file has no
 * unwind information; -E2BIG: more of it than we are willing to hold; what the sink answers.
 */
int elf_unwind_stream(const struct elf_image *image, const struct elf_unwind_sink *sink,
		      struct err *err);
void elf_unwind_table_release(struct elf_unwind_table *table);
