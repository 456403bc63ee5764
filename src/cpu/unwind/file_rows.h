/* src/cpu/unwind/file_rows.h: the unwind rows of a file, from whatever information it has. */
#pragma once

#include <stddef.h>

#include "cpu/unwind/files.h"
#include "elf/image.h"
#include "elf/unwind/builder.h"

/* Our own vdso: all processes share it. */
int cpu_file_image_vdso(struct elf_image **ret_image);
/*
 * Go's tables, .eh_frame, or both merged; also sets whether it is Go. -errno: there are none, or
 * the sink's error.
 */
int cpu_file_load_rows(struct cpu_file *file, const struct elf_unwind_sink *sink);

/* Uses the rules of first if it has any, otherwise those of the incoming rows. */
struct cpu_file_join {
	const struct elf_unwind_table *first; /* borrowed */
	size_t next;			      /* of its rows */
	struct elf_unwind_rule rules[2];      /* the current ones */
	struct elf_unwind_builder joined;
};

/* For an elf_unwind_sink whose context is the join. */
int cpu_file_join_rows(void *context, const struct elf_unwind_row *rows, size_t n);
/* Call after the last row. */
int cpu_file_join_finish(struct cpu_file_join *join);
