/* src/cpu/unwind/file_tables.c: see file_tables.h. */
#include "cpu/unwind/file_tables.h"

#include <elf.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/io.h"
#include "cpu/unwind/file_rows.h"
#include "elf/image.h"

#define PRINT_BLOCK ((size_t)64 << 10)
#define LARGE_ROWS ((size_t)64 << 10)
/* Above this, reading it all would take longer than compiling a part of it again. */
#define PRINT_MAX_BYTES ((uint64_t)64 << 20)

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

/*
 * A fingerprint of everything rows are compiled from. False for files whose tables are not shared.
 */
static bool file_print(const struct cpu_file *file, uint64_t *ret)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	const struct elf_section *frames;
	struct stat st;
	uint64_t print;

	if (file->fd < 0 || !file->build_id[0] || io_stat(file->fd, &st) < 0 ||
	    elf_image_open_fd(file->fd, &image, NULL) < 0)
		return false;
	frames = elf_image_section(image, ".eh_frame");
	/* Go's rows come from many places, and its programs are rarely in two images. */
	if (!frames || frames->type == SHT_NOBITS || frames->size > PRINT_MAX_BYTES ||
	    elf_image_section(image, ".gopclntab") ||
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

/* Rows on their way from a file into its table. */
struct rows_passed {
	struct cpu_file *file;
	const struct elf_unwind_range *range;
	const struct cpu_pause *pause;
	const struct elf_unwind_sink *sink;
	size_t n;
};

static int pass_rows(void *context, const struct elf_unwind_row *rows, size_t n)
{
	struct rows_passed *p = context;

	p->n += n;
	if (p->pause)
		p->pause->call(p->pause->context);
	return n ? p->sink->rows(p->sink->context, rows, n) : 0;
}

static int load_rows(void *context, const struct elf_unwind_sink *sink)
{
	struct rows_passed *p = context;
	const struct elf_unwind_sink passing = {.rows = pass_rows, .context = p};

	p->sink = sink;
	return cpu_file_load_rows(p->file, p->range, &passing);
}

static int table_compile(struct cpu_tables *tables, struct cpu_file *file,
			 const struct elf_unwind_range *range,
			 const struct cpu_file_loading *loading, struct cpu_table *ret)
{
	struct rows_passed passed = {.file = file, .range = range, .pause = loading->pause};
	int r;

	do
		r = cpu_tables_add(tables, loading->uid, load_rows, &passed, ret);
	while ((r == -ENOSPC || r == -EDQUOT) &&
	       loading->make_room(loading->context, loading->uid, r));
	/* Return what a large file took temporarily, or it would count as our memory forever. */
	if (passed.n > LARGE_ROWS) {
		cpu_tables_unmap(tables);
		(void)malloc_trim(0);
	}
	return r;
}

int cpu_file_tables_take(struct cpu_file_tables *shared, struct cpu_tables *tables,
			 struct cpu_file *file, const struct elf_unwind_range *range,
			 const struct cpu_file_loading *loading, struct cpu_file_table **ret_table)
{
	uint64_t print = 0, from = range ? range->from : 0;
	bool can_share = file_print(file, &print);
	struct cpu_file_table *t;
	int r;

	for (t = shared->first; t && can_share; t = t->next)
		if (t->print == print && t->from == from &&
		    strcmp(t->build_id, file->build_id) == 0) {
			t->users++;
			*ret_table = t;
			return 0;
		}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	r = table_compile(tables, file, range, loading, &t->table);
	if (r < 0) {
		free(t);
		return r;
	}
	t->print = print;
	t->from = from;
	if (can_share)
		memcpy(t->build_id, file->build_id, sizeof(t->build_id));
	t->users = 1;
	t->next = shared->first;
	shared->first = t;
	*ret_table = t;
	return 0;
}

void cpu_file_tables_give(struct cpu_file_tables *shared, struct cpu_tables *tables,
			  struct cpu_file_table *table)
{
	struct cpu_file_table **at = &shared->first;

	if (!table || --table->users)
		return;
	while (*at != table)
		at = &(*at)->next;
	*at = table->next;
	cpu_tables_remove(tables, &table->table);
	free(table);
}
