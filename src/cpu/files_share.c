/* src/cpu/files_share.c: see files_share.h. */
#include "cpu/files_share.h"

#include <elf.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "cpu/files_load.h"
#include "elf/image.h"

#define PRINT_BLOCK ((size_t)64 << 10)
#define LARGE_ROWS ((size_t)64 << 10)

static bool print_section(const struct elf_image *image, const struct elf_section *section,
			  uint64_t *print)
{
	_cleanup_free_ uint8_t *block = malloc(PRINT_BLOCK);

	if (!block)
		return false;
	for (uint64_t at = 0; at < section->size;) {
		size_t n = (size_t)MIN((uint64_t)PRINT_BLOCK, section->size - at);

		if (elf_image_read(image, section->offset + at, block, n) < 0)
			return false;
		*print = hash_mix(*print ^ hash_bytes(block, n));
		at += n;
	}
	return true;
}

/* Of all that rows are compiled from. False for files that are not to be shared. */
static bool file_print(const struct cpu_file *file, uint64_t *ret)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	const struct elf_section *frames;
	struct stat st;
	uint64_t print;

	if (file->fd < 0 || !file->build_id[0] || fstat(file->fd, &st) < 0 ||
	    elf_image_open_fd(file->fd, &image, NULL) < 0)
		return false;
	frames = elf_image_section(image, ".eh_frame");
	/* Go's come from many places, and its programs are seldom in two images. */
	if (!frames || frames->type == SHT_NOBITS || elf_image_section(image, ".gopclntab") ||
	    elf_image_section(image, ".data.rel.ro.gopclntab"))
		return false;
	print = hash_mix((uint64_t)st.st_size ^ hash_u64(frames->addr));
	print = hash_mix(print ^
			 hash_bytes(image->segments, image->n_segments * sizeof(*image->segments)));
	if (!print_section(image, frames, &print))
		return false;
	*ret = print;
	return true;
}

static int table_compile(struct cpu_tables *tables, struct cpu_file *file,
			 bool (*make_room)(void *context), void *context, struct cpu_table *ret)
{
	struct unwind_table rows = {0};
	bool large;
	int r;

	r = file_load_rows(file, &rows);
	if (r < 0)
		return r;
	do
		r = cpu_tables_add(tables, rows.rows, rows.n_rows, ret, NULL);
	while (r == -ENOSPC && make_room(context));
	/* What a large file took on the way should not count as ours for good. */
	large = rows.n_rows > LARGE_ROWS;
	unwind_table_release(&rows);
	if (large)
		(void)malloc_trim(0);
	return r;
}

int file_tables_take(struct file_tables *shared, struct cpu_tables *tables, struct cpu_file *file,
		     bool (*make_room)(void *context), void *context, struct file_table **ret_table)
{
	uint64_t print = 0;
	bool can_share = file_print(file, &print);
	struct file_table *t;
	int r;

	for (t = shared->first; t && can_share; t = t->next)
		if (t->print == print && strcmp(t->build_id, file->build_id) == 0) {
			t->users++;
			*ret_table = t;
			return 0;
		}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	r = table_compile(tables, file, make_room, context, &t->table);
	if (r < 0) {
		free(t);
		return r;
	}
	t->print = print;
	if (can_share)
		memcpy(t->build_id, file->build_id, sizeof(t->build_id));
	t->users = 1;
	t->next = shared->first;
	shared->first = t;
	*ret_table = t;
	return 0;
}

void file_tables_give(struct file_tables *shared, struct cpu_tables *tables,
		      struct file_table *table)
{
	struct file_table **at = &shared->first;

	if (!table || --table->users)
		return;
	while (*at != table)
		at = &(*at)->next;
	*at = table->next;
	cpu_tables_remove(tables, &table->table);
	free(table);
}
