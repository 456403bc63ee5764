/*
 * src/store/sqlite/merge.c: merges dictionary chunks. Every commit leaves small chunks of new
 * frames and stacks. They are merged once they add up to half of the largest one, so each stack is
 * rewritten only a few times a day. Sorted together, stacks share longer prefixes.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "store/codec/chunk.h"
#include "store/sqlite/state.h"

#define MERGE_MAX_CHUNK                                                                            \
	((size_t)4 << 20) /* bytes of frame ids in memory; larger chunks are not merged */

struct merging {
	struct store_writer *w;
	struct store_codec *codec;
	struct buf stacks; /* struct store_chunk_stack, with an offset into ids instead of frames */
	struct buf ids;
	struct buf frames; /* struct store_chunk_frame, into text */
	struct arena text;
	uint32_t first_frame;
	uint32_t next_frame;
};

static void merging_release(struct merging *m)
{
	buf_release(&m->stacks);
	buf_release(&m->ids);
	buf_release(&m->frames);
	arena_release(&m->text);
}

static int keep_stack(void *ctx, const struct store_chunk_stack *s, uint32_t shared)
{
	struct merging *m = ctx;
	struct store_chunk_stack copy = *s;
	int r;

	(void)shared;
	copy.frames = (const void *)(uintptr_t)m->ids.len;
	r = buf_append(&m->ids, s->frames, s->n * sizeof(uint32_t));
	return r < 0 ? r : buf_append(&m->stacks, &copy, sizeof(copy));
}

static int keep_frame(void *ctx, uint32_t id, const struct store_chunk_frame *f)
{
	struct merging *m = ctx;
	struct store_chunk_frame copy = *f;

	/* Ids of a merged chunk are contiguous. */
	if (m->frames.len == 0)
		m->first_frame = id;
	else if (id != m->next_frame)
		return -EBADMSG;
	m->next_frame = id + 1;
	copy.name.data = f->name.len ? arena_dup(&m->text, f->name.data, f->name.len) : NULL;
	copy.file.data = f->file.len ? arena_dup(&m->text, f->file.data, f->file.len) : NULL;
	copy.module.data =
		f->module.len ? arena_dup(&m->text, f->module.data, f->module.len) : NULL;
	if ((f->name.len && !copy.name.data) || (f->file.len && !copy.file.data) ||
	    (f->module.len && !copy.module.data))
		return -ENOMEM;
	return buf_append(&m->frames, &copy, sizeof(copy));
}

static int put_stacks(struct merging *m, int64_t key, struct buf *out, struct err *err)
{
	struct store_chunk_stack *stacks = (void *)m->stacks.data;
	size_t n = m->stacks.len / sizeof(*stacks);
	int r;

	for (size_t i = 0; i < n; i++)
		stacks[i].frames = (const void *)(m->ids.data + (uintptr_t)stacks[i].frames);
	r = store_chunk_encode_stacks(m->codec, stacks, n, out);
	buf_clear(&m->stacks);
	buf_clear(&m->ids);
	return r < 0 ? r : store_day_put(&m->w->day, STORE_DAY_PUT_STACKS, key, buf_view(out), err);
}

static int put_frames(struct merging *m, int64_t key, struct buf *out, struct err *err)
{
	size_t n = m->frames.len / sizeof(struct store_chunk_frame);
	int r = store_chunk_encode_frames(m->codec, m->first_frame, (void *)m->frames.data, n, out);

	buf_clear(&m->frames);
	arena_release(&m->text);
	return r < 0 ? r : store_day_put(&m->w->day, STORE_DAY_PUT_FRAMES, key, buf_view(out), err);
}

struct chunk_list {
	struct buf keys; /* int64_t, ascending */
	size_t n;
	size_t bytes;
	size_t largest;
};

static int list_chunks(struct merging *m, bool stacks, uint32_t service, struct chunk_list *ret,
		       struct err *err)
{
	const int64_t range[] = {(int64_t)service << 32, (int64_t)service << 32 | UINT32_MAX};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&m->w->day, stacks ? STORE_DAY_STACKS : STORE_DAY_FRAMES, range, 2,
				&stmt, err);

	while (r == 0 && (r = store_day_next(&m->w->day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		size_t bytes = (size_t)sqlite3_column_bytes(stmt, 1);

		r = buf_append(&ret->keys, &key, sizeof(key));
		ret->n++;
		ret->bytes += bytes;
		ret->largest = MAX(ret->largest, bytes);
	}
	return r;
}

/* Adds the chunk to the merge, and deletes it. */
static int take_chunk(struct merging *m, bool stacks, int64_t key, struct err *err)
{
	const int64_t range[] = {key, key};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&m->w->day, stacks ? STORE_DAY_STACKS : STORE_DAY_FRAMES, range, 2,
				&stmt, err);

	if (r == 0)
		r = store_day_next(&m->w->day, stmt, err);
	if (r <= 0)
		return r;
	r = stacks ? store_chunk_decode_stacks(m->codec, store_day_blob(stmt, 1), keep_stack, m)
		   : store_chunk_decode_frames(m->codec, store_day_blob(stmt, 1), keep_frame, m);
	store_day_done(stmt);
	if (r < 0)
		return err_set(err, r, "%s: damaged names", m->w->day.path);
	return store_day_exec(&m->w->day, stacks ? STORE_DAY_DROP_STACKS : STORE_DAY_DROP_FRAMES,
			      range, 2, err);
}

static int merge(struct merging *m, bool stacks, const struct chunk_list *list, struct err *err)
{
	_cleanup_(buf_release) struct buf out = {0};
	const int64_t *keys = (const void *)list->keys.data;
	int64_t first = keys[0];
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++) {
		if (m->ids.len + m->text.used == 0)
			first = keys[i];
		r = take_chunk(m, stacks, keys[i], err);
		if (r < 0 || (i + 1 < list->n && m->ids.len + m->text.used < MERGE_MAX_CHUNK))
			continue;
		r = stacks ? put_stacks(m, first, &out, err) : put_frames(m, first, &out, err);
	}
	return r;
}

/* Chunks that cannot be merged whole stay as they are. */
static int are_whole(struct merging *m, bool stacks, uint32_t service, struct err *err)
{
	const int64_t range[] = {(int64_t)service << 32, (int64_t)service << 32 | UINT32_MAX};
	sqlite3_stmt *stmt = NULL;
	bool whole = true;
	int r = store_day_query(&m->w->day, stacks ? STORE_DAY_STACKS : STORE_DAY_FRAMES, range, 2,
				&stmt, err);

	while (r == 0 && (r = store_day_next(&m->w->day, stmt, err)) > 0) {
		r = 0;
		if (store_codec_is_whole(store_day_blob(stmt, 1)))
			continue;
		whole = false;
		store_day_damaged(&m->w->day, stacks ? STORE_DAY_STACKS : STORE_DAY_FRAMES,
				  sqlite3_column_int64(stmt, 0));
	}
	return r < 0 ? r : whole;
}

static int merge_kind(struct merging *m, bool stacks, uint32_t service, bool always,
		      struct err *err)
{
	struct chunk_list list = {0};
	int r = list_chunks(m, stacks, service, &list, err);

	if (r == 0 && list.n > 1 && (always || list.bytes - list.largest > list.largest / 2)) {
		r = are_whole(m, stacks, service, err);
		if (r > 0)
			r = merge(m, stacks, &list, err);
	}
	buf_release(&list.keys);
	return r;
}

int store_sqlite_merge_chunks(struct store_writer *w, struct store_writer_tools *t,
			      uint32_t service, bool always, struct err *err)
{
	_cleanup_(merging_release) struct merging m = {.w = w, .codec = &t->codec};
	int r = merge_kind(&m, true, service, always, err);

	return r < 0 ? r : merge_kind(&m, false, service, always, err);
}
