/* src/elf/unwind/builder.h: builds an unwind table from rows in address order. */
#pragma once

#include "elf/unwind/unwind.h"

/* Empty if zeroed. With a sink, rows go there, and starts are only counted. */
struct elf_unwind_builder {
	struct elf_unwind_table table;
	size_t rows_cap;
	size_t starts_cap;
	const struct elf_unwind_sink *sink; /* borrowed; NULL: all rows are kept */
	size_t n_sunk;
	int error; /* why a row could not be added */
};

/* Doubles an array (a pointer to it); -E2BIG if it already has max elements. */
int elf_unwind_grow(void *array, size_t *cap, size_t max, size_t size);

/*
 * The rule holds from vaddr on. Addresses never decrease; of several rows for one address, the last
 * counts. -E2BIG past our limit.
 */
int elf_unwind_builder_row(struct elf_unwind_builder *b, uint64_t vaddr,
			   struct elf_unwind_rule rule);
/* A function starts there; ascending. */
int elf_unwind_builder_start(struct elf_unwind_builder *b, uint64_t vaddr);
/* Passes the remaining rows to the sink: there are no more. */
int elf_unwind_builder_drain(struct elf_unwind_builder *b);
/* Moves the table out and leaves the builder empty. */
void elf_unwind_builder_finish(struct elf_unwind_builder *b, struct elf_unwind_table *ret_table);
void elf_unwind_builder_release(struct elf_unwind_builder *b);

/* unwind.c: fills the builder from a file; arguments and errors as of elf_unwind_stream(). */
int elf_unwind_build(const struct elf_image *image, const struct elf_unwind_range *range,
		     struct elf_unwind_builder *b, struct err *err);
