/*
 * src/cpu/unwind/file_tables.h: unwind tables, shared by files with the same content.
 *
 * A file of a container image is a different file in each container. Build id and size tell which
 * are likely equal; as a hostile file can claim any, the input of the rows is compared as well, by
 * a hash with a secret seed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/unwind/files.h"
#include "cpu/unwind/tables.h"

struct cpu_file_table {
	struct cpu_table table;
	char build_id[41]; /* "": for one file only */
	uint64_t print;
	uint64_t from; /* of its range; 0: the whole file */
	uint32_t users;
	struct cpu_file_table *next;
};

/* Empty if zeroed. */
struct cpu_file_tables {
	struct cpu_file_table *first;
};

/* What loading a table needs from others. */
struct cpu_file_loading {
	uid_t uid; /* in whose share */
	/* why: -ENOSPC or -EDQUOT. True: there is more room now. */
	bool (*make_room)(void *context, uid_t uid, int why);
	void *context;
	const struct cpu_pause *pause; /* NULL is fine */
};

/*
 * The table of the rows, or of those in a range, of this file or an equal one; takes a reference.
 * -errno as of cpu_file_load_rows() and cpu_tables_add().
 */
int cpu_file_tables_take(struct cpu_file_tables *shared, struct cpu_tables *tables,
			 struct cpu_file *file, const struct elf_unwind_range *range,
			 const struct cpu_file_loading *loading, struct cpu_file_table **ret_table);
void cpu_file_tables_give(struct cpu_file_tables *shared, struct cpu_tables *tables,
			  struct cpu_file_table *table); /* NULL is fine */
