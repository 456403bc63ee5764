/* src/golang/symbols/cgo.c: see cgo.h. */
#include "golang/symbols/cgo.h"

#include <elf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/symbols.h"
#include "golang/binary/image.h"

#define NATIVE_MAX_FILES 64
/* Of the symbol tables of all files: a target can bring any number of large ones. */
#define NATIVE_MAX_BYTES ((uint64_t)128 << 20)

struct golang_native_file {
	uint64_t start; /* of the mapping that was asked for */
	uint64_t bias;
	struct elf_functions *functions; /* NULL when the file tells nothing */
};

/* About what the functions of a file take in memory: symbols grow by half, names stay. */
static uint64_t native_bytes(const struct elf_image *elf)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->type == SHT_SYMTAB || s->type == SHT_DYNSYM || s->type == SHT_STRTAB)
			bytes += MIN(s->size, NATIVE_MAX_BYTES) * 2;
	}
	return bytes;
}

static struct golang_native_file native_open(struct golang_native *native,
					     const struct proc_map *map)
{
	struct golang_native_file file = {.start = map->start};
	struct golang_image image = {0};
	uint64_t bytes;

	if (golang_image_of_map(native->mem, map, &image, NULL) < 0)
		return file;
	file.bias = image.bias;
	bytes = native_bytes(image.elf);
	if (bytes <= NATIVE_MAX_BYTES - native->bytes &&
	    elf_functions_load(image.elf, &file.functions, NULL) == 0)
		native->bytes += bytes;
	golang_image_release(&image);
	return file;
}

static const struct golang_native_file *native_file(struct golang_native *native,
						    const struct proc_map *map)
{
	struct golang_native_file *files;

	for (size_t i = 0; i < native->len; i++)
		if (native->files[i].start == map->start)
			return &native->files[i];
	if (native->len == NATIVE_MAX_FILES)
		return NULL;
	files = realloc(native->files, (native->len + 1) * sizeof(*files));
	if (!files)
		return NULL;
	native->files = files;
	files[native->len] = native_open(native, map);
	return &files[native->len++];
}

struct view golang_native_name(struct golang_native *native, uint64_t pc)
{
	const struct proc_map *map = proc_maps_find(proc_mem_maps(native->mem), pc);
	const struct golang_native_file *file = NULL;
	const char *name = NULL;
	uint64_t start;

	if (map && (map->flags & PROC_MAP_EXEC) && map->path[0] == '/')
		file = native_file(native, map);
	if (file && file->functions)
		name = elf_functions_lookup(file->functions, pc - file->bias, &start);
	return view_str(name ? name : "");
}

void golang_native_release(struct golang_native *native)
{
	for (size_t i = 0; i < native->len; i++)
		elf_functions_free(native->files[i].functions);
	free(native->files);
	*native = (struct golang_native){.mem = native->mem};
}
