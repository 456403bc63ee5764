/* src/golang/symbols/cgo.c: see cgo.h. */
#include "golang/symbols/cgo.h"

#include <elf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/symbols.h"
#include "golang/binary/image.h"

#define NATIVE_MAX_FILES 64
/* For the symbol tables of all files: a target can have any number of large ones. */
#define NATIVE_MAX_BYTES ((uint64_t)128 << 20)

struct golang_cgo_file {
	uint64_t start; /* of the requested mapping */
	uint64_t bias;
	struct elf_functions *functions; /* NULL if the file has none */
};

/* Approximate memory for the functions of a file: symbols grow by half, names do not. */
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

static struct golang_cgo_file native_open(struct golang_cgo *cgo, const struct proc_map *map)
{
	struct golang_cgo_file file = {.start = map->start};
	struct golang_image image = {0};
	uint64_t bytes;

	if (golang_image_of_map(cgo->mem, map, &image, NULL) < 0)
		return file;
	file.bias = image.bias;
	bytes = native_bytes(image.elf);
	if (bytes <= NATIVE_MAX_BYTES - cgo->bytes &&
	    elf_functions_load(image.elf, &file.functions, NULL) == 0)
		cgo->bytes += bytes;
	golang_image_release(&image);
	return file;
}

static const struct golang_cgo_file *native_file(struct golang_cgo *cgo, const struct proc_map *map)
{
	struct golang_cgo_file *files;

	for (size_t i = 0; i < cgo->len; i++)
		if (cgo->files[i].start == map->start)
			return &cgo->files[i];
	if (cgo->len == NATIVE_MAX_FILES)
		return NULL;
	files = realloc(cgo->files, (cgo->len + 1) * sizeof(*files));
	if (!files)
		return NULL;
	cgo->files = files;
	files[cgo->len] = native_open(cgo, map);
	return &files[cgo->len++];
}

struct view golang_cgo_name(struct golang_cgo *cgo, uint64_t pc)
{
	const struct proc_map *map = proc_maps_find(proc_mem_maps(cgo->mem), pc);
	const struct golang_cgo_file *file = NULL;
	const char *name = NULL;
	uint64_t start;

	if (map && (map->flags & PROC_MAP_EXEC) && map->path[0] == '/')
		file = native_file(cgo, map);
	if (file && file->functions)
		name = elf_functions_lookup(file->functions, pc - file->bias, 0, &start);
	return view_str(name ? name : "");
}

void golang_cgo_release(struct golang_cgo *cgo)
{
	for (size_t i = 0; i < cgo->len; i++)
		elf_functions_free(cgo->files[i].functions);
	free(cgo->files);
	*cgo = (struct golang_cgo){.mem = cgo->mem};
}
