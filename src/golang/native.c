/* src/golang/native.c: see native.h. */
#include "golang/native.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/symbols.h"
#include "golang/image.h"

#define NATIVE_MAX_FILES 64

struct golang_native_file {
	uint64_t start; /* of the mapping that was asked for */
	uint64_t bias;
	struct elf_functions *functions; /* NULL when the file tells nothing */
};

static struct golang_native_file native_open(struct proc_mem *mem, const struct proc_map *map)
{
	struct golang_native_file file = {.start = map->start};
	struct golang_image image;

	if (golang_image_of_map(mem, map, &image, NULL) < 0)
		return file;
	file.bias = image.bias;
	(void)elf_functions_load(image.elf, &file.functions, NULL);
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
	files[native->len] = native_open(native->mem, map);
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
