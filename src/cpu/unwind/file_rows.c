/* src/cpu/unwind/file_rows.c: see file_rows.h. */
#include "cpu/unwind/file_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "golang/binary/program.h"
#include "proc/maps.h"

int cpu_file_image_vdso(struct elf_image **ret_image)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	const struct proc_map *map;
	int r;

	/* Use the size of our mapping: another kind of target may have a larger vdso. */
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

/* The rule that holds at the beginning of the range. */
static int clip_begin(struct cpu_file_clip *clip)
{
	const struct elf_unwind_row row = {.vaddr = clip->range->from, .rule = clip->before};

	clip->has_begun = true;
	return row.rule.cfa == ELF_UNWIND_NONE ? 0 : clip->sink->rows(clip->sink->context, &row, 1);
}

int cpu_file_clip_rows(void *context, const struct elf_unwind_row *rows, size_t n)
{
	struct cpu_file_clip *clip = context;
	const struct elf_unwind_range *range = clip->range;
	size_t end = n, at = 0;

	/* A pause. */
	if (!n)
		return clip->sink->rows(clip->sink->context, NULL, 0);
	for (; at < n && rows[at].vaddr < range->from; at++)
		clip->before = rows[at].rule;
	while (end > at && rows[end - 1].vaddr >= range->to)
		end--;
	if (at == n)
		return 0;
	if (!clip->has_begun) {
		bool is_covered = rows[at].vaddr == range->from;
		int r = is_covered ? 0 : clip_begin(clip);

		clip->has_begun = true;
		if (r < 0)
			return r;
	}
	return at == end ? 0 : clip->sink->rows(clip->sink->context, rows + at, end - at);
}

int cpu_file_clip_finish(struct cpu_file_clip *clip)
{
	return clip->has_begun ? 0 : clip_begin(clip);
}

static int join_row(struct cpu_file_join *join, uint64_t vaddr)
{
	const struct elf_unwind_rule *rules = join->rules;

	return elf_unwind_builder_row(&join->joined, vaddr,
				      rules[0].cfa != ELF_UNWIND_NONE ? rules[0] : rules[1]);
}

/* The rows of the first table below an address. */
static int join_first(struct cpu_file_join *join, uint64_t before)
{
	const struct elf_unwind_table *first = join->first;
	int r = 0;

	for (; r == 0 && join->next < first->n_rows; join->next++) {
		const struct elf_unwind_row *row = &first->rows[join->next];

		if (row->vaddr >= before)
			break;
		join->rules[0] = row->rule;
		r = join_row(join, row->vaddr);
	}
	return r;
}

int cpu_file_join_rows(void *context, const struct elf_unwind_row *rows, size_t n)
{
	struct cpu_file_join *join = context;
	const struct elf_unwind_sink *sink = join->joined.sink;
	int r = 0;

	if (!n && sink)
		return sink->rows(sink->context, NULL, 0);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = join_first(join, rows[i].vaddr);
		join->rules[1] = rows[i].rule;
		/* A row of the first table at the same address follows it, and wins. */
		if (r == 0)
			r = join_row(join, rows[i].vaddr);
	}
	return r;
}

int cpu_file_join_finish(struct cpu_file_join *join)
{
	int r = join_first(join, UINT64_MAX);

	return r < 0 ? r : elf_unwind_builder_drain(&join->joined);
}

static int load_go(struct cpu_file *file, struct elf_unwind_table *ret_rows)
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

static int load_native(const struct cpu_file *file, const struct elf_unwind_range *range,
		       const struct elf_unwind_sink *sink)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	int r;

	r = file->is_vdso ? cpu_file_image_vdso(&image) : elf_image_open_fd(file->fd, &image, NULL);
	if (r < 0)
		return r;
	return elf_unwind_stream(image, range, sink, NULL);
}

static int load_both(const struct cpu_file *file, const struct elf_unwind_table *go,
		     const struct elf_unwind_range *range, const struct elf_unwind_sink *sink)
{
	struct cpu_file_join join = {.first = go, .joined = {.sink = sink}};
	const struct elf_unwind_sink to = {.rows = cpu_file_join_rows, .context = &join};
	int r = load_native(file, range, &to);

	/* A failure of one table does not affect the other. */
	if (r < 0 && !join.joined.error) {
		join.rules[1] = (struct elf_unwind_rule){.cfa = ELF_UNWIND_NONE};
		r = 0;
	}
	if (r == 0)
		r = cpu_file_join_finish(&join);
	elf_unwind_builder_release(&join.joined);
	return r;
}

int cpu_file_load_rows(struct cpu_file *file, const struct elf_unwind_range *range,
		       const struct elf_unwind_sink *sink)
{
	_cleanup_(elf_unwind_table_release) struct elf_unwind_table go = {0};
	struct cpu_file_clip clip = {.range = range, .sink = sink};
	const struct elf_unwind_sink clipped = {.rows = cpu_file_clip_rows, .context = &clip};
	const struct elf_unwind_sink *to = range ? &clipped : sink;
	int r;

	r = load_go(file, &go) < 0 ? load_native(file, range, to) : load_both(file, &go, range, to);
	return r == 0 && range ? cpu_file_clip_finish(&clip) : r;
}
