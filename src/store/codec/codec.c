/* src/store/codec/codec.c: the seal and the columns of blocks. */
#include "store/codec/codec.h"

#include <errno.h>

#include <zstd.h>

#include "base/crc.h"

#define SEAL_BYTES 6

void store_codec_release(struct store_codec *c)
{
	ZSTD_freeCCtx(c->compressor);
	ZSTD_freeDCtx(c->decompressor);
	for (size_t i = 0; i < ARRAY_SIZE(c->columns); i++)
		buf_release(&c->columns[i]);
	buf_release(&c->scratch);
	*c = (struct store_codec){0};
}

int store_codec_begin(struct buf *out, enum store_codec_kind kind)
{
	const uint8_t seal[SEAL_BYTES] = {STORE_CODEC_VERSION, (uint8_t)kind};

	buf_clear(out);
	return buf_append(out, seal, sizeof(seal));
}

void store_codec_end(struct buf *out)
{
	uint32_t crc = crc32c(view_of(out->data + SEAL_BYTES, out->len - SEAL_BYTES));

	memcpy(out->data + 2, &crc, sizeof(crc));
}

static int put_plain(struct buf *out, struct view column)
{
	int r = buf_append_varint(out, (uint64_t)column.len << 1);

	return r < 0 ? r : buf_append(out, column.data, column.len);
}

int store_codec_put_column_below(struct store_codec *c, struct buf *out, struct view column,
				 int level, size_t most)
{
	size_t bound = ZSTD_compressBound(column.len);
	size_t n;
	int r;

	if (column.len > STORE_CODEC_MAX_COLUMN)
		return -E2BIG;
	if (level == STORE_CODEC_PLAIN || column.len < 32)
		return put_plain(out, column);
	if (!c->compressor)
		c->compressor = ZSTD_createCCtx();
	if (!c->compressor)
		return -ENOMEM;
	buf_clear(&c->scratch);
	r = buf_reserve(&c->scratch, bound);
	if (r < 0)
		return r;
	n = ZSTD_compressCCtx(c->compressor, c->scratch.data, bound, column.data, column.len,
			      level);
	if (ZSTD_isError(n))
		return -ENOMEM;
	if (n > most)
		return put_plain(out, column);
	r = buf_append_varint(out, (uint64_t)column.len << 1 | 1);
	if (r < 0)
		return r;
	r = buf_append_varint(out, n);
	return r < 0 ? r : buf_append(out, c->scratch.data, n);
}

int store_codec_put_column(struct store_codec *c, struct buf *out, struct view column, int level)
{
	return store_codec_put_column_below(c, out, column, level, column.len ? column.len - 1 : 0);
}

bool store_codec_is_whole(struct view block)
{
	struct view body;
	uint32_t crc;

	return view_u32(block, 2, &crc) &&
	       view_sub(block, SEAL_BYTES, block.len - SEAL_BYTES, &body) &&
	       block.data[0] == STORE_CODEC_VERSION && crc == crc32c(body);
}

int store_codec_open(struct view block, enum store_codec_kind kind, struct store_cursor *ret_body)
{
	if (!store_codec_is_whole(block) || block.data[1] != kind)
		return -EBADMSG;
	*ret_body =
		(struct store_cursor){.at = block.data + SEAL_BYTES, .end = block.data + block.len};
	return 0;
}

/* The bytes of the next column as on disk, and their unpacked length. */
static int next_column(struct store_cursor *body, struct view *ret_bytes, size_t *ret_len,
		       bool *ret_zip)
{
	uint64_t word, stored;

	if (!store_cursor_varint(body, &word))
		return -EBADMSG;
	stored = word >> 1;
	if (stored > STORE_CODEC_MAX_COLUMN ||
	    ((word & 1) && !store_cursor_varint(body, &stored)) || stored > store_cursor_left(body))
		return -EBADMSG;
	*ret_bytes = view_of(body->at, stored);
	*ret_len = word >> 1;
	*ret_zip = word & 1;
	body->at += stored;
	return 0;
}

int store_codec_skip_column(struct store_cursor *body)
{
	struct view bytes;
	size_t len;
	bool zip;

	return next_column(body, &bytes, &len, &zip);
}

int store_codec_get_column(struct store_codec *c, struct store_cursor *body, unsigned int slot,
			   struct store_cursor *ret_column)
{
	struct buf *to = &c->columns[slot];
	struct view bytes;
	size_t len, n;
	bool zip;
	int r = next_column(body, &bytes, &len, &zip);

	if (r < 0)
		return r;
	if (!zip) {
		*ret_column =
			(struct store_cursor){.at = bytes.data, .end = bytes.data + bytes.len};
		return 0;
	}
	if (!c->decompressor)
		c->decompressor = ZSTD_createDCtx();
	if (!c->decompressor)
		return -ENOMEM;
	if (ZSTD_getFrameContentSize(bytes.data, bytes.len) != len)
		return -EBADMSG;
	buf_clear(to);
	r = buf_reserve(to, len + 1);
	if (r < 0)
		return r;
	n = ZSTD_decompressDCtx(c->decompressor, to->data, len, bytes.data, bytes.len);
	if (ZSTD_isError(n) || n != len)
		return -EBADMSG;
	*ret_column = (struct store_cursor){.at = to->data, .end = to->data + len};
	return 0;
}
