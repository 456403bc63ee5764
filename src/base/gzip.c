/* src/base/gzip.c: zlib between views and bounded buffers. */
#include "base/gzip.h"

#include <errno.h>
#include <limits.h>

#include <zlib.h>

#define GZIP_CHUNK ((size_t)16 << 10)
/* zlib's encoding of "largest window, with gzip header". */
#define GZIP_WINDOW_BITS (15 + 16)
#define GZIP_MEM_LEVEL 8

struct gzip_writer {
	z_stream z;
	struct buf *out;
};

int gzip_writer_new(struct buf *out, struct gzip_writer **ret_writer, struct err *err)
{
	struct gzip_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return err_oom(err);
	w->out = out;
	/* Fast rather than small, as in runtime/pprof: a profile is written every few seconds. */
	if (deflateInit2(&w->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(w);
		return err_oom(err);
	}
	*ret_writer = w;
	return 0;
}

void gzip_writer_free(struct gzip_writer *w)
{
	if (!w)
		return;
	(void)deflateEnd(&w->z);
	free(w);
}

/* Lets zlib fill the free end of the buffer until it has no more output. */
static int gzip_drain(struct gzip_writer *w, int flush)
{
	do {
		size_t room;
		int r = buf_reserve(w->out, GZIP_CHUNK);

		if (r < 0)
			return r;
		room = MIN(w->out->cap - w->out->len, (size_t)UINT_MAX);
		w->z.next_out = w->out->data + w->out->len;
		w->z.avail_out = (uInt)room;
		if (deflate(&w->z, flush) == Z_STREAM_ERROR)
			return -EINVAL;
		w->out->len += room - w->z.avail_out;
	} while (w->z.avail_out == 0);
	return 0;
}

int gzip_writer_write(struct gzip_writer *w, struct view data)
{
	while (data.len > 0) {
		size_t n = MIN(data.len, (size_t)UINT_MAX);
		int r;

		w->z.next_in = (Bytef *)data.data;
		w->z.avail_in = (uInt)n;
		r = gzip_drain(w, Z_NO_FLUSH);
		if (r < 0)
			return r;
		data = view_of(data.data + n, data.len - n);
	}
	return 0;
}

int gzip_writer_finish(struct gzip_writer *w)
{
	w->z.next_in = NULL;
	w->z.avail_in = 0;
	return gzip_drain(w, Z_FINISH);
}

bool gzip_is_packed(struct view data)
{
	return data.len >= 2 && data.data[0] == 0x1f && data.data[1] == 0x8b;
}

static int gzip_no_room(const struct buf *out, int r, struct err *err)
{
	if (r != -E2BIG)
		return err_oom(err);
	return err_lack(err, r, ERR_CAUSE_LIMIT, "check that the file is a profile",
			"the compressed data unpacks to more than the limit of %zu MB",
			(out->max ? out->max : BUF_DEFAULT_MAX) >> 20);
}

/* Unpacks one member; *z has its input set, which starts at start. */
static int gzip_unpack_member(z_stream *z, const uint8_t *start, struct buf *out, struct err *err)
{
	for (;;) {
		size_t max = out->max ? out->max : BUF_DEFAULT_MAX;
		size_t room;
		int r = buf_reserve(out, out->len < max ? MIN(GZIP_CHUNK, max - out->len) : 1);

		if (r < 0)
			return gzip_no_room(out, r, err);
		room = MIN(out->cap - out->len, (size_t)UINT_MAX);
		z->next_out = out->data + out->len;
		z->avail_out = (uInt)room;
		r = inflate(z, Z_NO_FLUSH);
		out->len += room - z->avail_out;
		if (r == Z_STREAM_END)
			return 0;
		if (r == Z_MEM_ERROR)
			return err_oom(err);
		/* Z_BUF_ERROR: out of input, though not out of room. */
		if (r == Z_BUF_ERROR)
			return err_set(err, -EBADMSG,
				       "the compressed data is truncated after byte %td; copy or "
				       "download the file again",
				       z->next_in - start);
		if (r != Z_OK)
			return err_set(err, -EBADMSG,
				       "the compressed data is damaged at byte %td (%s); copy or "
				       "download the file again",
				       z->next_in - start, z->msg ? z->msg : "bad stream");
	}
}

int gzip_unpack(struct view data, struct buf *out, struct err *err)
{
	z_stream z = {.next_in = (Bytef *)data.data, .avail_in = (uInt)data.len};
	int r;

	if (data.len > UINT_MAX)
		return err_set(err, -E2BIG, "the compressed data is larger than 4 GB");
	if (inflateInit2(&z, GZIP_WINDOW_BITS) != Z_OK)
		return err_oom(err);
	do {
		r = gzip_unpack_member(&z, data.data, out, err);
		/* The format allows another member to follow at once. */
	} while (r == 0 && z.avail_in > 0 && inflateReset(&z) == Z_OK);
	(void)inflateEnd(&z);
	return r;
}
