/*
 * src/cpu/files_share.h: unwind tables that are shared by files of the same content.
 *
 * A file of an image is another file in each of its containers. Build id and size tell which are
 * likely the same; since a hostile file can claim any, what the rows are compiled from is compared
 * as well, by a hash that depends on a secret.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/files.h"
#include "cpu/tables.h"

struct file_table {
	struct cpu_table table;
	char build_id[41]; /* "": of one file only */
	uint64_t print;
	uint32_t users;
	struct file_table *next;
};

/* A zeroed one is empty. */
struct file_tables {
	struct file_table *first;
};

/*
 * The rows' table, of this file or of one like it; counts a user. Makes room by asking make_room,
 * as long as that is true. -errno as of file_load_rows() and cpu_tables_add().
 */
int file_tables_take(struct file_tables *shared, struct cpu_tables *tables, struct cpu_file *file,
		     bool (*make_room)(void *context), void *context,
		     struct file_table **ret_table);
void file_tables_give(struct file_tables *shared, struct cpu_tables *tables,
		      struct file_table *table); /* NULL is fine */
