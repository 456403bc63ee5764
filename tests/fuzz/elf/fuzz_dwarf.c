/*
 * tests/fuzz/elf/fuzz_dwarf.c: any bytes as an ELF file with DWARF: opened, also as its own
 * alternate file, and asked for addresses all over its code.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/dwarf/dwarf.h"

#define MAX_BYTES ((size_t)4 << 20)
#define LOOKUPS 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	int n;
	size_t bytes; /* of strings, all of which are read */
};

static size_t sum_of(struct view text)
{
	size_t sum = 0;

	for (size_t i = 0; i < text.len; i++)
		sum += text.data[i];
	return sum;
}

static int use_frame(void *context, const struct elf_dwarf_frame *frame)
{
	struct seen *seen = context;

	seen->n++;
	seen->bytes += sum_of(frame->name) + sum_of(frame->file);
	if (frame->line < 0 || frame->start_line < 0)
		__builtin_trap();
	return 0;
}

static void look_up(struct elf_dwarf *dwarf, uint64_t vaddr)
{
	struct seen seen = {0};
	int n = elf_dwarf_frames(dwarf, vaddr, use_frame, &seen, NULL);

	if (n != seen.n || n > ELF_DWARF_MAX_FRAMES)
		__builtin_trap();
}

static void look_up_segments(struct elf_dwarf *dwarf, const struct elf_image *image)
{
	for (size_t i = 0; i < image->n_segments && i < 4; i++) {
		const struct elf_segment *s = &image->segments[i];

		for (uint64_t k = 0; k < LOOKUPS && s->flags & PF_X; k++)
			look_up(dwarf, s->vaddr + s->memsz / LOOKUPS * k);
	}
	look_up(dwarf, 0);
	look_up(dwarf, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_(elf_dwarf_closep) struct elf_dwarf *dwarf = NULL;

	if (elf_image_open_bytes(view_of(data, size), &image, NULL) < 0 ||
	    elf_dwarf_open(image, MAX_BYTES, &dwarf, NULL) < 0)
		return 0;
	(void)elf_dwarf_set_alternate(dwarf, image, NULL);
	look_up_segments(dwarf, image);
	/* The work space of zstd and the like comes on top. */
	if (elf_dwarf_memory(dwarf) > 4 * MAX_BYTES)
		__builtin_trap();
	return 0;
}
