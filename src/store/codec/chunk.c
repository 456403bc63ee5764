/* src/store/codec/chunk.c: the codec of dictionaries. */
#include "store/codec/chunk.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "store/codec/column.h"

#define ZSTD_LEVEL_FRAMES 3
#define ZSTD_LEVEL_STACKS 1

static uint8_t *put_string(uint8_t *p, struct view s)
{
	p = put_varint(p, s.len);
	if (s.len)
		memcpy(p, s.data, s.len);
	return p + s.len;
}

/*
 * A chunk is written a few times a day and read by every sum: it stays uncompressed unless that
 * saves at least a third.
 */
static int put_columns(struct codec *c, uint8_t *const *ends, unsigned int n, int level,
		       struct buf *out)
{
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *begin = c->columns[i].data;
		size_t len = (size_t)(ends[i] - begin);
		int r = codec_put_column_below(c, out, view_of(begin, len), level, len / 3 * 2);

		if (r < 0)
			return r;
	}
	codec_end(out);
	return 0;
}

int chunk_encode_frames(struct codec *c, uint32_t first, const struct chunk_frame *frames, size_t n,
			struct buf *out)
{
	size_t names = 0, files = 0;
	uint8_t *at[3];
	int r = codec_begin(out, CODEC_FRAMES);

	for (size_t i = 0; i < n; i++) {
		names += frames[i].name.len;
		files += frames[i].file.len;
	}
	at[0] = column_begin(c, 0, n, names);
	at[1] = column_begin(c, 1, n, files);
	at[2] = column_begin(c, 2, n, 0);
	if (!at[0] || !at[1] || !at[2])
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		at[0] = put_string(at[0], frames[i].name);
		at[1] = put_string(at[1], frames[i].file);
		at[2] = put_varint(at[2], zigzag(frames[i].line));
	}
	if (r == 0)
		r = buf_append_varint(out, first);
	if (r == 0)
		r = buf_append_varint(out, n);
	return r < 0 ? r : put_columns(c, at, 3, ZSTD_LEVEL_FRAMES, out);
}

static int compare_stacks(const void *va, const void *vb)
{
	const struct chunk_stack *a = va, *b = vb;
	uint32_t n = MIN(a->n, b->n);

	for (uint32_t i = 0; i < n; i++)
		if (a->frames[i] != b->frames[i])
			return a->frames[i] < b->frames[i] ? -1 : 1;
	return a->n < b->n ? -1 : a->n > b->n;
}

/* before: the empty stack 0 for the first one. */
static void put_stack(uint8_t **at, const struct chunk_stack *s, const struct chunk_stack *before,
		      size_t width)
{
	uint32_t shared = 0;

	while (shared < s->n && shared < before->n && s->frames[shared] == before->frames[shared])
		shared++;
	at[0] = put_varint(at[0], zigzag((int64_t)s->id - before->id));
	at[1] = put_varint(at[1], shared);
	at[2] = put_varint(at[2], s->n - shared);
	for (uint32_t i = shared; i < s->n; i++, at[3] += width) {
		uint32_t id = htole32(s->frames[i]);

		memcpy(at[3], &id, width);
	}
}

int chunk_encode_stacks(struct codec *c, struct chunk_stack *stacks, size_t n, struct buf *out)
{
	const struct chunk_stack none = {0};
	size_t frames = 0, width;
	uint32_t most = 0;
	uint8_t *at[4];
	int r = codec_begin(out, CODEC_STACKS);

	for (size_t i = 0; i < n; i++) {
		frames += stacks[i].n;
		for (uint32_t k = 0; k < stacks[i].n; k++)
			most = MAX(most, stacks[i].frames[k]);
	}
	width = most > UINT16_MAX ? 4 : 2;
	for (unsigned int i = 0; i < 4; i++) {
		at[i] = column_begin(c, i, i < 3 ? n : 0, i < 3 ? 0 : frames * width);
		if (!at[i])
			return -ENOMEM;
	}
	if (n > 0)
		qsort(stacks, n, sizeof(*stacks), compare_stacks);
	for (size_t i = 0; i < n; i++)
		put_stack(at, &stacks[i], i ? &stacks[i - 1] : &none, width);
	if (r == 0)
		r = buf_append_varint(out, n);
	if (r == 0)
		r = buf_append_varint(out, width);
	return r < 0 ? r : put_columns(c, at, 4, ZSTD_LEVEL_STACKS, out);
}

static int get_columns(struct codec *c, struct cursor *body, struct cursor *columns, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		int r = codec_get_column(c, body, i, &columns[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static bool get_string(struct cursor *c, struct view *ret)
{
	uint64_t len;

	if (!cursor_varint(c, &len) || len > cursor_left(c))
		return false;
	*ret = view_of(c->at, len);
	c->at += len;
	return true;
}

int chunk_decode_frames(struct codec *c, struct view chunk, chunk_frame_fn *fn, void *ctx)
{
	struct cursor body, columns[3];
	struct chunk_frame frame;
	uint64_t first, n, line;
	int r = codec_open(chunk, CODEC_FRAMES, &body);

	if (r < 0)
		return r;
	if (!cursor_varint(&body, &first) || !cursor_varint(&body, &n) ||
	    first > CHUNK_MAX_FRAMES || n > CHUNK_MAX_FRAMES - first)
		return -EBADMSG;
	r = get_columns(c, &body, columns, 3);
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		if (!get_string(&columns[0], &frame.name) ||
		    !get_string(&columns[1], &frame.file) || !cursor_varint(&columns[2], &line))
			return -EBADMSG;
		frame.line = unzigzag(line);
		r = fn(ctx, (uint32_t)(first + i), &frame);
	}
	return r < 0 ? r : 0;
}

#define VARINTS 0U /* the width of frame ids in format 1 */

static bool get_frames_1(struct cursor *c, uint32_t *frames, uint64_t n)
{
	uint64_t frame;

	for (uint64_t i = 0; i < n; i++) {
		if (!cursor_varint(c, &frame) || frame >= CHUNK_MAX_FRAMES)
			return false;
		frames[i] = (uint32_t)frame;
	}
	return true;
}

/* Ids of two bytes, several at a time; may write this many entries past the last. */
#define PER_STEP 8U

static void get_narrow(const uint8_t *p, size_t left, uint32_t *frames, uint64_t n)
{
	uint16_t ids[PER_STEP];
	uint64_t i = 0;

	for (; i < n && left - 2 * i >= sizeof(ids); i += PER_STEP) {
		memcpy(ids, p + 2 * i, sizeof(ids));
		for (unsigned int k = 0; k < PER_STEP; k++)
			frames[i + k] = le16toh(ids[k]);
	}
	for (; i < n; i++) {
		memcpy(ids, p + 2 * i, sizeof(*ids));
		frames[i] = le16toh(ids[0]);
	}
}

/* n frame ids of this width; two-byte ones are below CHUNK_MAX_FRAMES. */
static bool get_frames(struct cursor *c, uint64_t width, uint32_t *frames, uint64_t n)
{
	const uint8_t *p = c->at;
	size_t left = cursor_left(c);

	if (width == VARINTS)
		return get_frames_1(c, frames, n);
	if (n * width > left)
		return false;
	c->at += n * width;
	if (width == 2) {
		get_narrow(p, left, frames, n);
		return true;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint32_t id;

		memcpy(&id, p + 4 * i, sizeof(id));
		frames[i] = le32toh(id);
		if (frames[i] >= CHUNK_MAX_FRAMES)
			return false;
	}
	return true;
}

/* The next stack, overwriting the frames of the previous one. */
static bool next_stack(struct cursor *columns, uint64_t width, uint32_t *frames,
		       struct chunk_stack *stack, uint64_t *ret_shared)
{
	uint64_t id, shared, further;

	if (!cursor_varint(&columns[0], &id) || !cursor_varint(&columns[1], &shared) ||
	    !cursor_varint(&columns[2], &further))
		return false;
	id = stack->id + (uint64_t)unzigzag(id);
	if (id > BLOCK_MAX_STACK || shared > stack->n || further > CHUNK_MAX_DEPTH - shared ||
	    !get_frames(&columns[3], width, frames + shared, further))
		return false;
	stack->id = (uint32_t)id;
	stack->n = (uint32_t)(shared + further);
	*ret_shared = shared;
	return true;
}

static int open_stacks(struct view chunk, struct cursor *ret_body, uint64_t *ret_n,
		       uint64_t *ret_width)
{
	int r = codec_open(chunk, CODEC_STACKS, ret_body);

	*ret_width = VARINTS;
	if (r < 0)
		r = codec_open(chunk, CODEC_STACKS_1, ret_body);
	else if (!cursor_varint(ret_body, ret_n) || !cursor_varint(ret_body, ret_width) ||
		 (*ret_width != 2 && *ret_width != 4))
		r = -EBADMSG;
	if (r == 0 && *ret_width == VARINTS && !cursor_varint(ret_body, ret_n))
		r = -EBADMSG;
	return r;
}

int chunk_decode_stacks(struct codec *c, struct view chunk, chunk_stack_fn *fn, void *ctx)
{
	uint32_t frames[CHUNK_MAX_DEPTH + PER_STEP];
	struct chunk_stack stack = {.frames = frames};
	struct cursor body, columns[4];
	uint64_t n = 0, width, shared;
	int r = open_stacks(chunk, &body, &n, &width);

	if (r < 0)
		return r;
	if (n > BLOCK_MAX_STACK + 1)
		return -EBADMSG;
	r = get_columns(c, &body, columns, 4);
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		if (!next_stack(columns, width, frames, &stack, &shared))
			return -EBADMSG;
		r = fn(ctx, &stack, (uint32_t)shared);
	}
	return r < 0 ? r : 0;
}

static int visit(struct codec *c, struct day *day, const int64_t range[2], bool stacks,
		 const struct chunk_visitor *v, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = day_query(day, stacks ? DAY_STACKS : DAY_FRAMES, range, 2, &stmt, err);

	if (r < 0)
		return r;
	while ((r = day_next(day, stmt, err)) > 0) {
		if (stacks)
			r = chunk_decode_stacks(c, day_blob(stmt, 1), v->stack, v->ctx);
		else
			r = chunk_decode_frames(c, day_blob(stmt, 1), v->frame, v->ctx);
		if (r < 0) {
			day_done(stmt);
			return err_set(err, r,
				       r == -EBADMSG ? "%s: damaged names"
						     : "%s: not enough memory for its names",
				       day->path);
		}
	}
	return r;
}

int chunk_visit(struct codec *c, struct day *day, uint32_t service, const struct chunk_visitor *v,
		struct err *err)
{
	const int64_t range[] = {(int64_t)service << 32, (int64_t)service << 32 | UINT32_MAX};
	int r = visit(c, day, range, false, v, err);

	return r < 0 ? r : visit(c, day, range, true, v, err);
}
