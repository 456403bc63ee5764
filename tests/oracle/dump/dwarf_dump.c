/*
 * tests/oracle/dump/dwarf_dump.c: prints what the elf room says of addresses, for test_dwarf.py to
 * compare with addr2line and llvm-symbolizer.
 *
 *   dwarf_dump FILE [MAX_BYTES [ALTERNATE]]    reads hexadecimal addresses on stdin
 *
 * prints for each "0xADDR", then "NAME" and "FILE:LINE" of each function, as addr2line -aif does.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "elf/dwarf/dwarf.h"

#define DEFAULT_MAX_BYTES "16777216"

static int print_frame(void *context, const struct elf_dwarf_frame *frame)
{
	(void)context;
	(void)printf("%.*s\n%.*s:%" PRId64 "\n", frame->name.len ? (int)frame->name.len : 2,
		     frame->name.len ? (const char *)frame->name.data : "??",
		     frame->file.len ? (int)frame->file.len : 2,
		     frame->file.len ? (const char *)frame->file.data : "??", frame->line);
	return 0;
}

static int lookup(struct elf_dwarf *dwarf, struct err *err)
{
	char line[64];
	int r = 0;

	while (r >= 0 && fgets(line, sizeof(line), stdin)) {
		uint64_t addr = strtoull(line, NULL, 16);

		(void)printf("0x%016" PRIx64 "\n", addr);
		r = elf_dwarf_frames(dwarf, addr, print_frame, NULL, err);
		if (r == 0)
			(void)printf("??\n??:0\n");
	}
	return r;
}

static int open_image(const char *path, struct elf_image **ret_image, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s", path);
	return elf_image_open_fd(fd, ret_image, err);
}

int main(int argc, char **argv)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL, *alternate = NULL;
	_cleanup_(elf_dwarf_closep) struct elf_dwarf *dwarf = NULL;
	struct err err = {0};
	int r;

	if (argc < 2) {
		(void)fprintf(stderr, "usage: dwarf_dump FILE [MAX_BYTES [ALTERNATE]]\n");
		return 2;
	}
	r = open_image(argv[1], &image, &err);
	if (r == 0)
		r = elf_dwarf_open(image, strtoull(argc > 2 ? argv[2] : DEFAULT_MAX_BYTES, NULL, 0),
				   &dwarf, &err);
	if (r == 0 && argc > 3)
		r = open_image(argv[3], &alternate, &err);
	if (r == 0 && argc > 3)
		r = elf_dwarf_set_alternate(dwarf, alternate, &err);
	if (r == 0)
		r = lookup(dwarf, &err);
	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", argv[1], err.text);
		return 1;
	}
	(void)fprintf(stderr, "%zu bytes held\n", elf_dwarf_memory(dwarf));
	return 0;
}
