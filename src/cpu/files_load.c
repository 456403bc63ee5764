/* src/cpu/files_load.c: see files_load.h. */
#include "cpu/files_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "golang/program.h"
#include "proc/maps.h"

int file_image_vdso(struct elf_image **ret_image)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	const struct proc_map *map;
	int r;

	/* Its size is ours: a target of another kind may have a larger one. */
	r = proc_maps_read(getpid(), &maps, NULL);
	if (r < 0)
		return r;
	map = proc_maps_find(&maps, vdso);
	if (!map || map->start != vdso)
		return -ENOENT;
	return elf_image_open_bytes(view_of((const void *)(uintptr_t)vdso, // NOLINT
					    (size_t)(map->end - map->start)),
				    ret_image, NULL);
}

static void rows_append(struct unwind_table *t, uint64_t vaddr, struct unwind_rule rule)
{
	struct unwind_row *last = t->n_rows ? &t->rows[t->n_rows - 1] : NULL;

	if (last && memcmp(&last->rule, &rule, sizeof(rule)) == 0)
		return;
	if (!last || last->vaddr != vaddr)
		t->n_rows++;
	t->rows[t->n_rows - 1] = (struct unwind_row){.vaddr = vaddr, .rule = rule};
}

int file_join_rows(const struct unwind_table *first, const struct unwind_table *second,
		   struct unwind_table *ret_rows)
{
	struct unwind_rule a = {0}, b = {0};
	struct unwind_table joined = {0};
	size_t i = 0, j = 0;

	joined.rows = calloc(first->n_rows + second->n_rows + 1, sizeof(*joined.rows));
	if (!joined.rows)
		return -ENOMEM;
	while (i < first->n_rows || j < second->n_rows) {
		uint64_t at = UINT64_MAX;

		if (i < first->n_rows)
			at = first->rows[i].vaddr;
		if (j < second->n_rows && second->rows[j].vaddr < at)
			at = second->rows[j].vaddr;
		if (i < first->n_rows && first->rows[i].vaddr == at)
			a = first->rows[i++].rule;
		if (j < second->n_rows && second->rows[j].vaddr == at)
			b = second->rows[j++].rule;
		rows_append(&joined, at, a.cfa != UNWIND_NONE ? a : b);
	}
	*ret_rows = joined;
	return 0;
}

static int load_go(struct cpu_file *file, struct unwind_table *ret_rows)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	int r;

	if (file->fd < 0)
		return -ENOTSUP;
	r = golang_program_open(file->fd, &program, NULL);
	if (r < 0)
		return r;
	file->is_go = true;
	return golang_program_unwind(program, ret_rows, NULL);
}

static int load_native(const struct cpu_file *file, struct unwind_table *ret_rows)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	int r;

	r = file->is_vdso ? file_image_vdso(&image) : elf_image_open_fd(file->fd, &image, NULL);
	if (r < 0)
		return r;
	return elf_unwind_compile(image, ret_rows, NULL);
}

int file_load_rows(struct cpu_file *file, struct unwind_table *ret_rows)
{
	_cleanup_(unwind_table_release) struct unwind_table go = {0}, native = {0};
	int r_go = load_go(file, &go);
	int r = load_native(file, &native);

	if (r_go < 0 && r < 0)
		return r;
	if (r_go >= 0 && r >= 0)
		return file_join_rows(&go, &native, ret_rows);
	*ret_rows = r_go >= 0 ? go : native;
	*(r_go >= 0 ? &go : &native) = (struct unwind_table){0};
	return 0;
}
