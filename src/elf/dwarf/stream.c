/* src/elf/dwarf/stream.c: see stream.h. */
#include "elf/dwarf/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#define DWARF_STREAM_INPUT ((size_t)16 << 10)
/* zlib's allocations per stream: its state and a window of 32 KiB. */
#define DWARF_ZLIB_STATE_BYTES ((size_t)40 << 10)
/* Linkers compress at the default level, with windows of 2 MiB; a forged file may demand GiBs. */
#define DWARF_ZSTD_WINDOW_LOG 23
/* The expected compression ratio of a page, at a low level. */
#define DWARF_KEPT_RATIO 2
#define DWARF_KEPT_LEVEL 1
#define DWARF_STREAM_MIN_SPACING ((uint64_t)128 << 10)

struct dwarf_stream_mark {
	uint64_t out;
	uint64_t in;
	z_stream z;
};

struct dwarf_kept {
	uint8_t *bytes; /* NULL: not kept */
	uint32_t len;
};

struct elf_dwarf_stream {
	const struct elf_image *image;
	struct elf_dwarf_squeeze *squeeze;
	enum elf_dwarf_stream_kind kind;
	uint64_t start; /* of the input, in the file */
	uint64_t end;
	uint64_t in;  /* file offset after the input buffer */
	uint64_t out; /* bytes produced so far */
	bool is_open;
	size_t page;
	z_stream z;
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer zin;
	struct dwarf_kept *kept; /* one per page, or NULL */
	size_t n_pages;
	size_t n_kept;
	size_t kept_bytes;
	size_t max_kept_bytes;
	struct dwarf_stream_mark *marks;
	size_t n_marks;
	size_t max_marks;
	uint64_t spacing;
	uint8_t input[DWARF_STREAM_INPUT];
};

struct elf_dwarf_squeeze {
	ZSTD_CCtx *in;
	ZSTD_DCtx *out;
	size_t size;
	uint8_t bytes[]; /* of one page */
};

struct elf_dwarf_squeeze *elf_dwarf_squeeze_new(size_t page)
{
	size_t size = ZSTD_compressBound(page);
	struct elf_dwarf_squeeze *q = malloc(sizeof(*q) + size);

	if (!q)
		return NULL;
	*q = (struct elf_dwarf_squeeze){
		.in = ZSTD_createCCtx(), .out = ZSTD_createDCtx(), .size = size};
	if (q->in && q->out)
		return q;
	elf_dwarf_squeeze_free(q);
	return NULL;
}

void elf_dwarf_squeeze_free(struct elf_dwarf_squeeze *q)
{
	if (!q)
		return;
	ZSTD_freeCCtx(q->in);
	ZSTD_freeDCtx(q->out);
	free(q);
}

size_t elf_dwarf_squeeze_memory(const struct elf_dwarf_squeeze *q)
{
	return sizeof(*q) + q->size + ZSTD_sizeof_CCtx(q->in) + ZSTD_sizeof_DCtx(q->out);
}

/* Spaces out as many states as there is room for. */
static void dwarf_stream_plan_marks(struct elf_dwarf_stream *s, uint64_t size, size_t max_bytes)
{
	size_t most = max_bytes / DWARF_ZLIB_STATE_BYTES;

	if (s->kind != ELF_DWARF_STREAM_ZLIB || most == 0)
		return;
	s->spacing = MAX(size / (most + 1) + 1, DWARF_STREAM_MIN_SPACING);
	s->max_marks = most;
}

struct elf_dwarf_stream *elf_dwarf_stream_new(const struct elf_image *image,
					      struct elf_dwarf_squeeze *squeeze,
					      const struct elf_dwarf_stream_options *o)
{
	struct elf_dwarf_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->image = image;
	s->squeeze = squeeze;
	s->kind = o->kind;
	s->start = s->in = o->off;
	s->end = o->off + o->len;
	s->page = o->page;
	if (o->size / DWARF_KEPT_RATIO > o->max_bytes) {
		dwarf_stream_plan_marks(s, o->size, o->max_bytes);
		return s;
	}
	s->max_kept_bytes = o->max_bytes;
	s->n_pages = (o->size + o->page - 1) / o->page;
	s->kept = calloc(s->n_pages, sizeof(*s->kept));
	if (s->n_pages && !s->kept) {
		free(s);
		return NULL;
	}
	return s;
}

static void dwarf_stream_shut(struct elf_dwarf_stream *s)
{
	if (s->is_open && s->kind == ELF_DWARF_STREAM_ZLIB)
		(void)inflateEnd(&s->z);
	s->is_open = false;
}

static void dwarf_stream_release(struct elf_dwarf_stream *s)
{
	dwarf_stream_shut(s);
	ZSTD_freeDCtx(s->zstd);
	s->zstd = NULL;
}

void elf_dwarf_stream_free(struct elf_dwarf_stream *s)
{
	if (!s)
		return;
	dwarf_stream_release(s);
	for (size_t i = 0; i < s->n_marks; i++)
		(void)inflateEnd(&s->marks[i].z);
	for (size_t i = 0; i < s->n_pages; i++)
		free(s->kept[i].bytes);
	free(s->kept);
	free(s->marks);
	free(s);
}

size_t elf_dwarf_stream_memory(const struct elf_dwarf_stream *s)
{
	size_t states = s->n_marks + (s->is_open && s->kind == ELF_DWARF_STREAM_ZLIB);

	return sizeof(*s) + states * DWARF_ZLIB_STATE_BYTES + s->n_marks * sizeof(*s->marks) +
	       (s->zstd ? ZSTD_sizeof_DCtx(s->zstd) : 0);
}

static int dwarf_stream_restart(struct elf_dwarf_stream *s)
{
	dwarf_stream_shut(s);
	s->in = s->start;
	s->out = 0;
	if (s->kind == ELF_DWARF_STREAM_ZLIB) {
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

static int dwarf_stream_resume(struct elf_dwarf_stream *s, struct dwarf_stream_mark *mark)
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

/* Moves the stream to the nearest position at or before off, possibly the current one. */
static int dwarf_stream_seek(struct elf_dwarf_stream *s, uint64_t off)
{
	struct dwarf_stream_mark *best = NULL;

	for (size_t i = 0; i < s->n_marks && s->marks[i].out <= off; i++)
		best = &s->marks[i];
	if (s->is_open && s->out <= off && (!best || best->out <= s->out))
		return 0;
	return best ? dwarf_stream_resume(s, best) : dwarf_stream_restart(s);
}

/* If out of memory, this only costs time later. */
static void dwarf_stream_mark(struct elf_dwarf_stream *s)
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

/* The same here: a page not kept is decompressed again. */
static void dwarf_stream_keep(struct elf_dwarf_stream *s, uint64_t off, const uint8_t *page,
			      size_t len)
{
	struct elf_dwarf_squeeze *q = s->squeeze;
	struct dwarf_kept *kept;
	size_t n;

	if (off % s->page || off / s->page >= s->n_pages || s->kept_bytes >= s->max_kept_bytes)
		return;
	kept = &s->kept[off / s->page];
	if (kept->bytes)
		return;
	n = ZSTD_compressCCtx(q->in, q->bytes, q->size, page, len, DWARF_KEPT_LEVEL);
	if (ZSTD_isError(n))
		return;
	kept->bytes = malloc(n);
	if (!kept->bytes)
		return;
	memcpy(kept->bytes, q->bytes, n);
	kept->len = (uint32_t)n;
	s->kept_bytes += n;
	s->n_kept++;
}

static bool dwarf_stream_recall(const struct elf_dwarf_stream *s, uint64_t off, void *dst,
				size_t len)
{
	const struct dwarf_kept *kept;

	if (off / s->page >= s->n_pages)
		return false;
	kept = &s->kept[off / s->page];
	return kept->bytes &&
	       ZSTD_decompressDCtx(s->squeeze->out, dst, s->page, kept->bytes, kept->len) == len;
}

static int dwarf_stream_fill(struct elf_dwarf_stream *s, size_t *ret_n)
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

static int dwarf_zlib_next(struct elf_dwarf_stream *s, uint8_t *dst, size_t len)
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

static int dwarf_zstd_next(struct elf_dwarf_stream *s, uint8_t *dst, size_t len)
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

static int dwarf_stream_next(struct elf_dwarf_stream *s, uint8_t *dst, size_t len)
{
	int r = s->kind == ELF_DWARF_STREAM_ZLIB ? dwarf_zlib_next(s, dst, len)
						 : dwarf_zstd_next(s, dst, len);

	if (r < 0) {
		/* The state is no longer usable. */
		dwarf_stream_shut(s);
		return r;
	}
	dwarf_stream_keep(s, s->out, dst, len);
	s->out += len;
	if (s->spacing)
		dwarf_stream_mark(s);
	/* Once all pages are kept, the state is no longer needed. */
	if (s->n_pages && s->n_kept == s->n_pages)
		dwarf_stream_release(s);
	return 0;
}

int elf_dwarf_stream_read(struct elf_dwarf_stream *s, uint64_t off, void *dst, size_t len,
			  uint64_t limit, uint64_t *work)
{
	int r;

	if (dwarf_stream_recall(s, off, dst, len)) {
		*work += len;
		return 0;
	}
	r = dwarf_stream_seek(s, off);
	if (r < 0)
		return r;
	/* Everything before off is decompressed into dst as well, and overwritten. */
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
