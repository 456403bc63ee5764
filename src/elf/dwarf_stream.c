/* src/elf/dwarf_stream.c: see dwarf_stream.h. */
#include "elf/dwarf_stream.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#define DWARF_STREAM_INPUT ((size_t)16 << 10)
/* What zlib allocates for a stream: its state and a window of 32 KiB. */
#define DWARF_ZLIB_STATE_BYTES ((size_t)40 << 10)
/* Linkers compress at the default level, with windows of 2 MiB; a forged one may ask for GiBs. */
#define DWARF_ZSTD_WINDOW_LOG 23
#define DWARF_STREAM_MIN_SPACING ((uint64_t)128 << 10)

struct dwarf_stream_mark {
	uint64_t out;
	uint64_t in;
	z_stream z;
};

struct dwarf_stream {
	const struct elf_image *image;
	enum dwarf_stream_kind kind;
	uint64_t start; /* of the input, in the file */
	uint64_t end;
	uint64_t in;  /* file offset of what comes behind the input buffer */
	uint64_t out; /* how many bytes have come out */
	bool is_open;
	size_t page;
	z_stream z;
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer zin;
	struct dwarf_stream_mark *marks;
	size_t n_marks;
	size_t max_marks;
	uint64_t spacing;
	uint8_t input[DWARF_STREAM_INPUT];
};

struct dwarf_stream *dwarf_stream_new(const struct elf_image *image, enum dwarf_stream_kind kind,
				      uint64_t off, uint64_t len)
{
	struct dwarf_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct dwarf_stream){
		.image = image, .kind = kind, .start = off, .end = off + len, .in = off};
	return s;
}

void dwarf_stream_plan(struct dwarf_stream *s, uint64_t size, size_t page, size_t max_bytes)
{
	size_t most = max_bytes / DWARF_ZLIB_STATE_BYTES;

	s->page = page;
	if (s->kind != DWARF_STREAM_ZLIB || most == 0)
		return;
	s->spacing = MAX(size / (most + 1) + 1, DWARF_STREAM_MIN_SPACING);
	s->max_marks = most;
}

static void dwarf_stream_shut(struct dwarf_stream *s)
{
	if (s->is_open && s->kind == DWARF_STREAM_ZLIB)
		(void)inflateEnd(&s->z);
	s->is_open = false;
}

void dwarf_stream_free(struct dwarf_stream *s)
{
	if (!s)
		return;
	dwarf_stream_shut(s);
	for (size_t i = 0; i < s->n_marks; i++)
		(void)inflateEnd(&s->marks[i].z);
	ZSTD_freeDCtx(s->zstd);
	free(s->marks);
	free(s);
}

size_t dwarf_stream_memory(const struct dwarf_stream *s)
{
	size_t states = s->n_marks + (s->is_open && s->kind == DWARF_STREAM_ZLIB);

	return sizeof(*s) + states * DWARF_ZLIB_STATE_BYTES + s->n_marks * sizeof(*s->marks) +
	       (s->zstd ? ZSTD_sizeof_DCtx(s->zstd) : 0);
}

static int dwarf_stream_restart(struct dwarf_stream *s)
{
	dwarf_stream_shut(s);
	s->in = s->start;
	s->out = 0;
	if (s->kind == DWARF_STREAM_ZLIB) {
		s->z = (z_stream){0};
		if (inflateInit(&s->z) != Z_OK)
			return -ENOMEM;
	} else {
		if (!s->zstd)
			s->zstd = ZSTD_createDCtx();
		if (!s->zstd)
			return -ENOMEM;
		(void)ZSTD_DCtx_reset(s->zstd, ZSTD_reset_session_only);
		(void)ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, DWARF_ZSTD_WINDOW_LOG);
		s->zin = (ZSTD_inBuffer){.src = s->input};
	}
	s->is_open = true;
	return 0;
}

static int dwarf_stream_resume(struct dwarf_stream *s, struct dwarf_stream_mark *mark)
{
	dwarf_stream_shut(s);
	if (inflateCopy(&s->z, &mark->z) != Z_OK)
		return -ENOMEM;
	s->z.avail_in = 0;
	s->in = mark->in;
	s->out = mark->out;
	s->is_open = true;
	return 0;
}

/* Brings the stream to the nearest place at or before off, which may be where it is. */
static int dwarf_stream_seek(struct dwarf_stream *s, uint64_t off)
{
	struct dwarf_stream_mark *best = NULL;

	for (size_t i = 0; i < s->n_marks && s->marks[i].out <= off; i++)
		best = &s->marks[i];
	if (s->is_open && s->out <= off && (!best || best->out <= s->out))
		return 0;
	return best ? dwarf_stream_resume(s, best) : dwarf_stream_restart(s);
}

/* A lack of memory here costs time later, nothing else. */
static void dwarf_stream_mark(struct dwarf_stream *s)
{
	uint64_t last = s->n_marks ? s->marks[s->n_marks - 1].out : 0;
	struct dwarf_stream_mark *mark;

	if (s->n_marks >= s->max_marks || s->out < last + s->spacing || s->out % s->page)
		return;
	if (!s->marks)
		s->marks = calloc(s->max_marks, sizeof(*s->marks));
	if (!s->marks)
		return;
	mark = &s->marks[s->n_marks];
	if (inflateCopy(&mark->z, &s->z) != Z_OK)
		return;
	mark->in = s->in - s->z.avail_in;
	mark->out = s->out;
	s->n_marks++;
}

static int dwarf_stream_fill(struct dwarf_stream *s, size_t *ret_n)
{
	size_t n = (size_t)MIN(s->end - s->in, DWARF_STREAM_INPUT);
	int r;

	if (n == 0)
		return -EBADMSG;
	r = elf_image_read(s->image, s->in, s->input, n);
	if (r < 0)
		return r;
	s->in += n;
	*ret_n = n;
	return 0;
}

static int dwarf_zlib_next(struct dwarf_stream *s, uint8_t *dst, size_t len)
{
	s->z.next_out = dst;
	s->z.avail_out = (uInt)len;
	while (s->z.avail_out) {
		int r;

		if (s->z.avail_in == 0) {
			size_t n;

			r = dwarf_stream_fill(s, &n);
			if (r < 0)
				return r;
			s->z.next_in = s->input;
			s->z.avail_in = (uInt)n;
		}
		r = inflate(&s->z, Z_NO_FLUSH);
		if (r == Z_MEM_ERROR)
			return -ENOMEM;
		if (r != Z_OK && !(r == Z_STREAM_END && s->z.avail_out == 0))
			return -EBADMSG;
	}
	return 0;
}

static int dwarf_zstd_next(struct dwarf_stream *s, uint8_t *dst, size_t len)
{
	ZSTD_outBuffer out = {.dst = dst, .size = len};

	while (out.pos < out.size) {
		size_t before = out.pos, n;

		n = ZSTD_decompressStream(s->zstd, &out, &s->zin);
		if (ZSTD_isError(n))
			return -EBADMSG;
		if (out.pos == out.size)
			break;
		if (n == 0)
			return -EBADMSG;
		if (out.pos == before && s->zin.pos == s->zin.size) {
			int r = dwarf_stream_fill(s, &s->zin.size);

			if (r < 0)
				return r;
			s->zin.pos = 0;
		}
	}
	return 0;
}

static int dwarf_stream_next(struct dwarf_stream *s, uint8_t *dst, size_t len)
{
	int r = s->kind == DWARF_STREAM_ZLIB ? dwarf_zlib_next(s, dst, len)
					     : dwarf_zstd_next(s, dst, len);

	if (r < 0) {
		/* The state is of no use any more. */
		dwarf_stream_shut(s);
		return r;
	}
	s->out += len;
	if (s->spacing)
		dwarf_stream_mark(s);
	return 0;
}

int dwarf_stream_read(struct dwarf_stream *s, uint64_t off, void *dst, size_t len, uint64_t limit,
		      uint64_t *work)
{
	int r = dwarf_stream_seek(s, off);

	if (r < 0)
		return r;
	/* What lies before is decompressed into dst as well, and overwritten. */
	while (s->out < off) {
		size_t n = (size_t)MIN(off - s->out, s->page);

		if (*work > limit)
			return -E2BIG;
		r = dwarf_stream_next(s, dst, n);
		if (r < 0)
			return r;
		*work += n;
	}
	*work += len;
	return dwarf_stream_next(s, dst, len);
}
