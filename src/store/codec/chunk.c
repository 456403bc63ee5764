/* src/store/codec/chunk.c: the codec of dictionaries. */
#include "store/codec/chunk.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "profile/profile.h"
#include "store/codec/column.h"

#define ZSTD_LEVEL_FRAMES 3
#define ZSTD_LEVEL_STACKS 1

uint64_t store_chunk_frame_hash(const struct store_chunk_frame *f)
{
	uint64_t file = f->file.len == 0 && f->module.len ? profile_hash_module(f->module)
							  : hash_bytes(f->file.data, f->file.len);

	return profile_hash_frame(hash_bytes(f->name.data, f->name.len), file, f->line);
}

static uint8_t *put_string(uint8_t *p, struct view s)
{
	p = store_put_varint(p, s.len);
	if (s.len)
		memcpy(p, s.data, s.len);
	return p + s.len;
}

/*
 * A chunk is written a few times a day and read by every sum: it stays uncompressed unless that
 * saves at least a third.
 */
static int put_columns(struct store_codec *c, uint8_t *const *ends, unsigned int n, int level,
		       struct buf *out)
{
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *begin = c->columns[i].data;
		size_t len = (size_t)(ends[i] - begin);
		int r = store_codec_put_column_below(c, out, view_of(begin, len), level,
						     len / 3 * 2);

		if (r < 0)
			return r;
	}
	store_codec_end(out);
	return 0;
}

int store_chunk_encode_frames(struct store_codec *c, uint32_t first,
			      const struct store_chunk_frame *frames, size_t n, struct buf *out)
{
	size_t names = 0, files = 0, modules = 0;
	uint8_t *at[4];
	int r = store_codec_begin(out, STORE_CODEC_FRAMES);

	for (size_t i = 0; i < n; i++) {
		names += frames[i].name.len;
		files += frames[i].file.len;
		modules += frames[i].module.len;
	}
	at[0] = store_column_begin(c, 0, n, names);
	at[1] = store_column_begin(c, 1, n, files);
	at[2] = store_column_begin(c, 2, n, 0);
	at[3] = store_column_begin(c, 3, n, modules);
	if (!at[0] || !at[1] || !at[2] || !at[3])
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		at[0] = put_string(at[0], frames[i].name);
		at[1] = put_string(at[1], frames[i].file);
		at[2] = store_put_varint(at[2], store_zigzag(frames[i].line));
		at[3] = put_string(at[3], frames[i].module);
	}
	if (r == 0)
		r = buf_append_varint(out, first);
	if (r == 0)
		r = buf_append_varint(out, n);
	return r < 0 ? r : put_columns(c, at, 4, ZSTD_LEVEL_FRAMES, out);
}

static int compare_stacks(const void *va, const void *vb)
{
	const struct store_chunk_stack *a = va, *b = vb;
	uint32_t n = MIN(a->n, b->n);

	for (uint32_t i = 0; i < n; i++)
		if (a->frames[i] != b->frames[i])
			return a->frames[i] < b->frames[i] ? -1 : 1;
	return a->n < b->n ? -1 : a->n > b->n;
}

/* before: the empty stack 0 for the first one. */
static void put_stack(uint8_t **at, const struct store_chunk_stack *s,
		      const struct store_chunk_stack *before, size_t width)
{
	uint32_t shared = 0;

	while (shared < s->n && shared < before->n && s->frames[shared] == before->frames[shared])
		shared++;
	at[0] = store_put_varint(at[0], store_zigzag((int64_t)s->id - before->id));
	at[1] = store_put_varint(at[1], shared);
	at[2] = store_put_varint(at[2], s->n - shared);
	for (uint32_t i = shared; i < s->n; i++, at[3] += width) {
		uint32_t id = htole32(s->frames[i]);

		memcpy(at[3], &id, width);
	}
}

int store_chunk_encode_stacks(struct store_codec *c, struct store_chunk_stack *stacks, size_t n,
			      struct buf *out)
{
	const struct store_chunk_stack none = {0};
	size_t frames = 0, width;
	uint32_t most = 0;
	uint8_t *at[4];
	int r = store_codec_begin(out, STORE_CODEC_STACKS);

	for (size_t i = 0; i < n; i++) {
		frames += stacks[i].n;
		for (uint32_t k = 0; k < stacks[i].n; k++)
			most = MAX(most, stacks[i].frames[k]);
	}
	width = most > UINT16_MAX ? 4 : 2;
	for (unsigned int i = 0; i < 4; i++) {
		at[i] = store_column_begin(c, i, i < 3 ? n : 0, i < 3 ? 0 : frames * width);
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

static int get_columns(struct store_codec *c, struct store_cursor *body,
		       struct store_cursor *columns, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		int r = store_codec_get_column(c, body, i, &columns[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static bool get_string(struct store_cursor *c, struct view *ret)
{
	uint64_t len;

	if (!store_cursor_varint(c, &len) || len > store_cursor_left(c))
		return false;
	*ret = view_of(c->at, len);
	c->at += len;
	return true;
}

int store_chunk_decode_frames(struct store_codec *c, struct view chunk, store_chunk_frame_fn *fn,
			      void *ctx)
{
	struct store_cursor body, columns[4];
	struct store_chunk_frame frame = {0};
	uint64_t first, n, line;
	bool has_modules;
	int r = store_codec_open(chunk, STORE_CODEC_FRAMES, &body);

	if (r < 0)
		return r;
	if (!store_cursor_varint(&body, &first) || !store_cursor_varint(&body, &n) ||
	    first > STORE_CHUNK_MAX_FRAMES || n > STORE_CHUNK_MAX_FRAMES - first)
		return -EBADMSG;
	r = get_columns(c, &body, columns, 3);
	has_modules = store_cursor_left(&body) > 0;
	if (r == 0 && has_modules)
		r = store_codec_get_column(c, &body, 3, &columns[3]);
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		if (!get_string(&columns[0], &frame.name) ||
		    !get_string(&columns[1], &frame.file) ||
		    !store_cursor_varint(&columns[2], &line) ||
		    (has_modules && !get_string(&columns[3], &frame.module)))
			return -EBADMSG;
		frame.line = store_unzigzag(line);
		r = fn(ctx, (uint32_t)(first + i), &frame);
	}
	return r < 0 ? r : 0;
}

#define VARINTS 0U /* the width of frame ids in format 1 */

static bool get_frames_1(struct store_cursor *c, uint32_t *frames, uint64_t n)
{
	uint64_t frame;

	for (uint64_t i = 0; i < n; i++) {
		if (!store_cursor_varint(c, &frame) || frame >= STORE_CHUNK_MAX_FRAMES)
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

/* n frame ids of this width; two-byte ones are below STORE_CHUNK_MAX_FRAMES. */
static bool get_frames(struct store_cursor *c, uint64_t width, uint32_t *frames, uint64_t n)
{
	const uint8_t *p = c->at;
	size_t left = store_cursor_left(c);

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
		if (frames[i] >= STORE_CHUNK_MAX_FRAMES)
			return false;
	}
	return true;
}

/* The next stack, overwriting the frames of the previous one. */
static bool next_stack(struct store_cursor *columns, uint64_t width, uint32_t *frames,
		       struct store_chunk_stack *stack, uint64_t *ret_shared)
{
	uint64_t id, shared, further;

	if (!store_cursor_varint(&columns[0], &id) || !store_cursor_varint(&columns[1], &shared) ||
	    !store_cursor_varint(&columns[2], &further))
		return false;
	id = stack->id + (uint64_t)store_unzigzag(id);
	if (id > STORE_BLOCK_MAX_STACK || shared > stack->n ||
	    further > STORE_CHUNK_MAX_DEPTH - shared ||
	    !get_frames(&columns[3], width, frames + shared, further))
		return false;
	stack->id = (uint32_t)id;
	stack->n = (uint32_t)(shared + further);
	*ret_shared = shared;
	return true;
}

static int open_stacks(struct view chunk, struct store_cursor *ret_body, uint64_t *ret_n,
		       uint64_t *ret_width)
{
	int r = store_codec_open(chunk, STORE_CODEC_STACKS, ret_body);

	*ret_width = VARINTS;
	if (r < 0)
		r = store_codec_open(chunk, STORE_CODEC_STACKS_1, ret_body);
	else if (!store_cursor_varint(ret_body, ret_n) ||
		 !store_cursor_varint(ret_body, ret_width) || (*ret_width != 2 && *ret_width != 4))
		r = -EBADMSG;
	if (r == 0 && *ret_width == VARINTS && !store_cursor_varint(ret_body, ret_n))
		r = -EBADMSG;
	return r;
}

int store_chunk_decode_stacks(struct store_codec *c, struct view chunk, store_chunk_stack_fn *fn,
			      void *ctx)
{
	uint32_t frames[STORE_CHUNK_MAX_DEPTH + PER_STEP];
	struct store_chunk_stack stack = {.frames = frames};
	struct store_cursor body, columns[4];
	uint64_t n = 0, width, shared;
	int r = open_stacks(chunk, &body, &n, &width);

	if (r < 0)
		return r;
	if (n > STORE_BLOCK_MAX_STACK + 1)
		return -EBADMSG;
	r = get_columns(c, &body, columns, 4);
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		if (!next_stack(columns, width, frames, &stack, &shared))
			return -EBADMSG;
		r = fn(ctx, &stack, (uint32_t)shared);
	}
	return r < 0 ? r : 0;
}

static int visit(struct store_codec *c, struct store_day *day, const int64_t range[2], bool stacks,
		 const struct store_chunk_visitor *v, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, stacks ? STORE_DAY_STACKS : STORE_DAY_FRAMES, range, 2, &stmt,
				err);

	if (r < 0)
		return r;
	while ((r = store_day_next(day, stmt, err)) > 0) {
		if (stacks)
			r = store_chunk_decode_stacks(c, store_day_blob(stmt, 1), v->stack, v->ctx);
		else
			r = store_chunk_decode_frames(c, store_day_blob(stmt, 1), v->frame, v->ctx);
		if (r == -EBADMSG && !day->writes) {
			store_day_damaged(day, stacks ? STORE_DAY_STACKS : STORE_DAY_FRAMES,
					  sqlite3_column_int64(stmt, 0));
			continue;
		}
		if (r < 0) {
			store_day_done(stmt);
			return err_set(err, r,
				       r == -EBADMSG ? "%s: damaged names"
						     : "%s: not enough memory for its names",
				       day->path);
		}
	}
	return r;
}

int store_chunk_visit(struct store_codec *c, struct store_day *day, uint32_t service,
		      const struct store_chunk_visitor *v, struct err *err)
{
	const int64_t range[] = {(int64_t)service << 32, (int64_t)service << 32 | UINT32_MAX};
	int r = visit(c, day, range, false, v, err);

	return r < 0 ? r : visit(c, day, range, true, v, err);
}
