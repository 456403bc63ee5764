/* src/cpu/unwind/file_rows.h: the unwind rows of one file, from whatever it has. */
#pragma once

#include <stddef.h>

#include "cpu/unwind/files.h"
#include "elf/image.h"
#include "elf/unwind/builder.h"

/* Our own vdso, which is every process's. */
int cpu_file_image_vdso(struct elf_image **ret_image);
/*
 * Go's tables, .eh_frame, or both joined; also says whether it is Go. -errno: there are none, or
 * what the sink answers.
 */
int cpu_file_load_rows(struct cpu_file *file, const struct elf_unwind_sink *sink);

/* Where first knows a rule it holds, elsewhere that of the rows that come. */
struct cpu_file_join {
	const struct elf_unwind_table *first; /* borrowed */
	size_t next;			      /* of its rows */
	struct elf_unwind_rule rules[2];      /* that hold so far */
	struct elf_unwind_builder joined;
};

/* For an unwind_sink, whose context is the join. */
int cpu_file_join_rows(void *context, const struct elf_unwind_row *rows, size_t n);
/* No more rows come. */
int cpu_file_join_finish(struct cpu_file_join *join);
