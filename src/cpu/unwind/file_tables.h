/*
 * src/cpu/unwind/file_tables.h: unwind tables that are shared by files of the same content.
 *
 * A file of an image is another file in each of its containers. Build id and size tell which are
 * likely the same; since a hostile file can claim any, what the rows are compiled from is compared
 * as well, by a hash that depends on a secret.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/unwind/files.h"
#include "cpu/unwind/tables.h"

struct cpu_file_table {
	struct cpu_table table;
	char build_id[41]; /* "": of one file only */
	uint64_t print;
	uint32_t users;
	struct cpu_file_table *next;
};

/* A zeroed one is empty. */
struct cpu_file_tables {
	struct cpu_file_table *first;
};

/* What the loading of a table may need of others. */
struct cpu_file_loading {
	bool (*make_room)(void *context); /* true: there is more room than before */
	void *context;
	const struct cpu_pause *pause; /* NULL is fine */
};

/*
 * The rows' table, of this file or of one like it; counts a user. -errno as of file_load_rows() and
 * cpu_tables_add().
 */
int cpu_file_tables_take(struct cpu_file_tables *shared, struct cpu_tables *tables,
			 struct cpu_file *file, const struct cpu_file_loading *loading,
			 struct cpu_file_table **ret_table);
void cpu_file_tables_give(struct cpu_file_tables *shared, struct cpu_tables *tables,
			  struct cpu_file_table *table); /* NULL is fine */
