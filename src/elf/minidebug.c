/* src/elf/minidebug.c: see minidebug.h. */
#include "elf/minidebug.h"

#include <elf.h>
#include <errno.h>
#include <lzma.h>

#include "base/cleanup.h"

#define MINIDEBUG_MAX_COMPRESSED ((uint64_t)16 << 20)
/* For the decompressor; xz -9 needs twice that, but nobody packs symbols that way. */
#define MINIDEBUG_MAX_MEMORY ((uint64_t)33 << 20)
#define MINIDEBUG_CHUNK ((size_t)64 << 10)

static void lzma_endp(lzma_stream *stream)
{
	lzma_end(stream);
}

/* Keeps room for another chunk at the end. */
static int minidebug_grow(lzma_stream *stream, struct buf *out)
{
	/* The last chunk may be shorter: the limit is exact. */
	size_t room = MIN(MINIDEBUG_CHUNK, ELF_MINIDEBUG_MAX_BYTES - out->len);
	int r;

	if (room == 0)
		return -E2BIG;
	r = buf_reserve(out, room);
	if (r < 0)
		return r;
	stream->next_out = out->data + out->len;
	stream->avail_out = room;
	return 0;
}

static int minidebug_failed(int code, struct err *err)
{
	if (code == -ENOMEM)
		return err_oom(err);
	if (code == -E2BIG)
		return err_set(err, -E2BIG, "the mini debug info of an ELF file is over %zu MB",
			       ELF_MINIDEBUG_MAX_BYTES >> 20);
	return err_set(err, -EBADMSG, "damaged mini debug info (.gnu_debugdata) in an ELF file");
}

static int minidebug_code(lzma_ret ret)
{
	return ret == LZMA_MEM_ERROR ? -ENOMEM : ret == LZMA_MEMLIMIT_ERROR ? -E2BIG : -EBADMSG;
}

static int minidebug_unpack(const struct elf_image *image, const struct elf_section *section,
			    lzma_stream *stream, struct buf *out)
{
	_cleanup_free_ uint8_t *in = malloc(MINIDEBUG_CHUNK);
	uint64_t off = 0;
	lzma_ret ret = LZMA_OK;

	if (!in)
		return -ENOMEM;
	while (ret == LZMA_OK) {
		size_t n = MIN(MINIDEBUG_CHUNK, section->size - off);
		int r = minidebug_grow(stream, out);

		if (r < 0)
			return r;
		if (stream->avail_in == 0) {
			if (elf_image_read(image, section->offset + off, in, n) < 0)
				return -EBADMSG;
			stream->next_in = in;
			stream->avail_in = n;
			off += n;
		}
		ret = lzma_code(stream, off == section->size ? LZMA_FINISH : LZMA_RUN);
		out->len = (size_t)(stream->next_out - out->data);
	}
	return ret == LZMA_STREAM_END ? 0 : minidebug_code(ret);
}

int elf_minidebug_read(const struct elf_image *image, struct buf *ret_bytes, struct err *err)
{
	const struct elf_section *section = elf_image_section(image, ".gnu_debugdata");
	struct buf out = buf_with_max(ELF_MINIDEBUG_MAX_BYTES);
	_cleanup_(lzma_endp) lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret ret;
	int r;

	if (!section || section->type == SHT_NOBITS)
		return err_set(err, -ENOENT, "the ELF file has no mini debug info");
	if (section->size > MINIDEBUG_MAX_COMPRESSED)
		return minidebug_failed(-E2BIG, err);
	ret = lzma_stream_decoder(&stream, MINIDEBUG_MAX_MEMORY, 0);
	if (ret != LZMA_OK)
		return minidebug_failed(minidebug_code(ret), err);
	r = minidebug_unpack(image, section, &stream, &out);
	if (r < 0) {
		buf_release(&out);
		return minidebug_failed(r, err);
	}
	*ret_bytes = out;
	return 0;
}
