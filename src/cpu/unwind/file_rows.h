/* src/cpu/unwind/file_rows.h: the unwind rows of a file, from whatever information it has. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cpu/unwind/files.h"
#include "elf/image.h"
#include "elf/unwind/builder.h"

/* Our own vdso: all processes share it. */
int cpu_file_image_vdso(struct elf_image **ret_image);
/*
 * Go's tables, .eh_frame, or both merged; also sets whether it is Go. range: as of
 * elf_unwind_stream(), but nothing outside is passed on; NULL: all. -errno: there are none, or the
 * sink's error.
 */
int cpu_file_load_rows(struct cpu_file *file, const struct elf_unwind_range *range,
		       const struct elf_unwind_sink *sink);

/* Passes on the rows within a range; the first is that of its beginning. Empty but for these two.
 */
struct cpu_file_clip {
	const struct elf_unwind_range *range;
	const struct elf_unwind_sink *sink;
	struct elf_unwind_rule before; /* the last rule before the range */
	bool has_begun;
};

/* For an elf_unwind_sink whose context is the clip. */
int cpu_file_clip_rows(void *context, const struct elf_unwind_row *rows, size_t n);
/* Call after the last row. */
int cpu_file_clip_finish(struct cpu_file_clip *clip);

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
