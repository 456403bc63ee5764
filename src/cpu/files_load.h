/* src/cpu/files_load.h: the unwind rows of one file, from whatever it has. */
#pragma once

#include <stddef.h>

#include "cpu/files.h"
#include "elf/image.h"
#include "elf/unwind.h"

/* Our own vdso, which is every process's. */
int file_image_vdso(struct elf_image **ret_image);
/* Go's tables, .eh_frame, or both joined; also says whether it is Go. -errno: there are none. */
int file_load_rows(struct cpu_file *file, struct unwind_table *ret_rows);
/*
 * Where first knows a rule it holds, elsewhere that of second. Both keep their rows; the result has
 * no starts.
 */
int file_join_rows(const struct unwind_table *first, const struct unwind_table *second,
		   struct unwind_table *ret_rows);
