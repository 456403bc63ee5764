/*
 * tests/fuzz/elf/fuzz_minidebug.c: any bytes as the section .gnu_debugdata, and what comes out of
 * it as an ELF file. If the first byte is odd, the rest is packed before: else checksums would keep
 * the fuzzer out.
 */
#include <assert.h>
#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include <lzma.h>

#include "elf/minidebug.h"
#include "elf/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct view bytes)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_(elf_functions_freep) struct elf_functions *functions = NULL;

	if (elf_image_open_bytes(bytes, &image, NULL) < 0 ||
	    elf_functions_load(image, &functions, NULL) < 0)
		return;
	for (uint64_t addr = 0; addr < 0x3000; addr += 0x7f)
		(void)elf_functions_lookup(functions, addr, 0, NULL);
}

static void read_section(const uint8_t *data, size_t size)
{
	struct elf_section section = {.name = ".gnu_debugdata", .type = SHT_PROGBITS, .size = size};
	struct elf_image image = {.sections = &section,
				  .n_sections = 1,
				  .fd = -1,
				  .bytes = view_of(data, size),
				  .size = size};
	struct buf out = {0};

	if (elf_minidebug_read(&image, &out, NULL) < 0) {
		if (out.data)
			__builtin_trap();
		return;
	}
	if (out.len > ELF_MINIDEBUG_MAX_BYTES)
		__builtin_trap();
	use(buf_view(&out));
	buf_release(&out);
}

/* A stream of one block, stored as it is. */
static size_t pack(const uint8_t *data, size_t size, uint8_t *out, size_t cap)
{
	lzma_stream_flags flags = {.check = LZMA_CHECK_NONE};
	lzma_filter filters[LZMA_FILTERS_MAX + 1] = {{.id = LZMA_VLI_UNKNOWN}};
	lzma_block block = {.check = LZMA_CHECK_NONE, .filters = filters};
	lzma_index *index = lzma_index_init(NULL);
	size_t at = LZMA_STREAM_HEADER_SIZE;

	assert(index && lzma_stream_header_encode(&flags, out) == LZMA_OK);
	assert(lzma_block_uncomp_encode(&block, data, size, out, &at, cap) == LZMA_OK);
	assert(lzma_index_append(index, NULL, lzma_block_unpadded_size(&block),
				 block.uncompressed_size) == LZMA_OK);
	assert(lzma_index_buffer_encode(index, out, &at, cap) == LZMA_OK);
	flags.backward_size = lzma_index_size(index);
	assert(lzma_stream_footer_encode(&flags, out + at) == LZMA_OK);
	lzma_index_end(index, NULL);
	return at + LZMA_STREAM_HEADER_SIZE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *packed = NULL;
	size_t cap = lzma_stream_buffer_bound(size);

	if (size == 0)
		return 0;
	if (data[0] % 2 == 0) {
		read_section(data + 1, size - 1);
		return 0;
	}
	packed = malloc(cap);
	if (packed)
		read_section(packed,
			     pack(data + 1, size - 1, packed, cap - LZMA_STREAM_HEADER_SIZE));
	return 0;
}
