/*
 * tests/oracle/dump/elf_dump.c: prints what the elf room reads of a file, for elf_readelf.py to
 * compare with readelf.
 *
 *   elf_dump FILE               headers: lines of H (file), L (segment), S (section), B (build id)
 *   elf_dump FILE find          reads names on stdin, prints "VALUE SIZE NAME" of those found
 *   elf_dump FILE lookup        reads hexadecimal addresses on stdin, prints "ADDR START NAME"
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/symbols.h"

#define MAX_NAMES 1024

static void dump_headers(const struct elf_image *image)
{
	char id[256];

	(void)printf("H %u %u %" PRIx64 "\n", image->type, image->machine, image->entry);
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];

		(void)printf("L %x %x %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", s->type,
			     s->flags, s->offset, s->vaddr, s->filesz, s->memsz);
	}
	for (size_t i = 0; i < image->n_sections; i++) {
		const struct elf_section *s = &image->sections[i];

		(void)printf("S %zu %" PRIx64 " %" PRIx64 " %" PRIx64 " %u %s\n", i, s->addr,
			     s->offset, s->size, s->link, s->name);
	}
	if (elf_image_build_id(image, id, sizeof(id)))
		(void)printf("B %s\n", id);
}

static int find(const struct elf_image *image, struct err *err)
{
	static struct elf_symbol wanted[MAX_NAMES];
	char line[8192];
	size_t n = 0;
	int r;

	while (n < MAX_NAMES && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		wanted[n].name = strdup(line);
		if (!wanted[n++].name)
			return err_oom(err);
	}
	r = elf_symbols_find(image, wanted, n, err);
	for (size_t i = 0; i < n; i++) {
		if (r >= 0 && wanted[i].value)
			(void)printf("%" PRIx64 " %" PRIu64 " %s\n", wanted[i].value,
				     wanted[i].size, wanted[i].name);
		free((char *)wanted[i].name);
	}
	return r;
}

static int lookup(const struct elf_image *image, struct err *err)
{
	_cleanup_(elf_functions_freep) struct elf_functions *functions = NULL;
	int r = elf_functions_load(image, &functions, err);
	char line[64];

	if (r < 0)
		return r;
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t addr = strtoull(line, NULL, 16), start = 0;
		const char *name = elf_functions_lookup(functions, addr, 0, &start);

		(void)printf("%" PRIx64 " %" PRIx64 " %s\n", addr, start, name ? name : "-");
	}
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_close_ int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct err err = {0};
	int r;

	if (fd < 0) {
		perror(argc > 1 ? argv[1] : "usage: elf_dump FILE [find|lookup]");
		return 2;
	}
	r = elf_image_open_fd(fd, &image, &err);
	if (r == 0 && argc == 2)
		dump_headers(image);
	else if (r == 0 && strcmp(argv[2], "find") == 0)
		r = find(image, &err);
	else if (r == 0)
		r = lookup(image, &err);
	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", argv[1], err.text);
		return 1;
	}
	return 0;
}
