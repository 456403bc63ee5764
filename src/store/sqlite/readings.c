/* src/store/sqlite/readings.c: see readings.h. */
#include "store/sqlite/readings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/suffix.h"
#include "store/codec/chunk.h"
#include "store/sqlite/dict.h"

#define MAX_READINGS ((size_t)2 << 20) /* of an hour: 5,000 processes, every 10 s */
#define FRAME_BYTES (STORE_CHUNK_MAX_FRAMES / 8)
#define NOT_IN UINT32_MAX

void store_readings_release(struct store_readings *r)
{
	store_codec_release(&r->codec);
	free(r->marks);
	free(r->frames);
	map_release(&r->index);
	buf_release(&r->found);
	buf_release(&r->scratch);
	*r = (struct store_readings){0};
}

static int mark_frame(void *ctx, uint32_t id, const struct store_chunk_frame *f)
{
	struct store_readings *r = ctx;
	struct view name = f->name;

	if (id >= STORE_CHUNK_MAX_FRAMES)
		return -EBADMSG;
	name.len = profile_suffix_start(name, profile_suffix_trust_of(f->file, f->module.len > 0));
	if (view_eq(name, view_str(r->function->name)) &&
	    (!r->function->file || view_eq(f->file, view_str(r->function->file))))
		r->frames[id / 8] |= (uint8_t)(1U << id % 8);
	return 0;
}

static bool is_marked(const struct store_readings *r, uint32_t frame)
{
	return r->frames[frame / 8] >> frame % 8 & 1;
}

/* Neighbours share their frames from the root: these are looked at once. */
static int mark_stack(void *ctx, const struct store_chunk_stack *s, uint32_t shared)
{
	struct store_readings *r = ctx;

	if (r->first >= shared) {
		r->first = NOT_IN;
		for (uint32_t i = shared; i < s->n && r->first == NOT_IN; i++)
			if (is_marked(r, s->frames[i]))
				r->first = i;
	}
	if (r->first != NOT_IN)
		r->marks[s->id] =
			is_marked(r, s->frames[s->n - 1]) ? STORE_BLOCK_SELF : STORE_BLOCK_TOTAL;
	return 0;
}

int store_readings_begin(struct store_readings *r, struct store_day *day, uint32_t service,
			 const struct store_function *function, struct err *err)
{
	const struct store_chunk_visitor visitor = {mark_frame, mark_stack, r};

	r->function = function;
	r->first = NOT_IN;
	if (!r->marks)
		r->marks = malloc(STORE_BLOCK_MAX_STACK + 1);
	if (!r->frames)
		r->frames = malloc(FRAME_BYTES);
	if (!r->marks || !r->frames)
		return err_oom(err);
	memset(r->marks, STORE_BLOCK_UNMARKED, STORE_BLOCK_MAX_STACK + 1);
	memset(r->frames, 0, FRAME_BYTES);
	if (strcmp(function->name, STORE_DICT_OTHER_NAME) == 0 && !function->file)
		r->marks[STORE_DICT_OTHER] = STORE_BLOCK_SELF;
	return store_chunk_visit(&r->codec, day, service, &visitor, err);
}

static uint64_t index_key(int64_t ms, uint32_t labelset)
{
	return (uint64_t)store_day_key(0, ms, labelset);
}

static int found_add(struct store_readings *r, int64_t ms, uint32_t labelset,
		     const struct store_block_reading *reading)
{
	struct store_block_reading *found;
	uint64_t key = index_key(ms, labelset), i;
	int ret;

	/* What came late is in a part of its own. */
	if (map_get(&r->index, key, &i)) {
		found = (struct store_block_reading *)(void *)r->found.data + i;
		found->self = store_block_add(found->self, reading->self);
		found->total = store_block_add(found->total, reading->total);
		return 0;
	}
	if (r->found.len / sizeof(*reading) == MAX_READINGS)
		return -E2BIG;
	ret = map_put(&r->index, key, r->found.len / sizeof(*reading));
	return ret < 0 ? ret : buf_append(&r->found, reading, sizeof(*reading));
}

static int read_pack(struct store_readings *r, unsigned int hour, uint32_t labelset,
		     struct view block)
{
	const struct store_block_reading *readings;
	int ret;

	buf_clear(&r->scratch);
	ret = store_block_read_pack(&r->codec, block, r->marks, &r->scratch);
	readings = (const void *)r->scratch.data;
	for (size_t i = 0; ret == 0 && i < r->scratch.len / sizeof(*readings); i++)
		ret = found_add(r, (int64_t)hour * STORE_BLOCK_HOUR_MS + readings[i].ms, labelset,
				&readings[i]);
	return ret;
}

static int read_row(struct store_readings *r, int64_t key, struct view block)
{
	struct store_block_reading reading = {0};
	int ret = store_block_read_sums(&r->codec, block, r->marks, &reading);

	return ret < 0 ? ret
		       : found_add(r, store_day_key_ms(key), store_day_key_labelset(key), &reading);
}

static int readings_failed(struct store_day *day, int r, struct err *err)
{
	if (r == -E2BIG)
		return err_lack(err, r, ERR_CAUSE_LIMIT, "filter by a label, such as process.pid",
				"too many processes for the curve of a function");
	return err_set(err, r, "%s: not enough memory to read it", day->path);
}

/* A block that is damaged is skipped, and noted: its readings are not found. */
static int read_range(struct store_readings *r, struct store_day *day, enum store_day_sql table,
		      const int64_t range[2], const uint8_t *bits, struct err *err)
{
	bool packs = table == STORE_DAY_PACKS;
	sqlite3_stmt *stmt = NULL;
	int ret = store_day_query(day, table, range, 2, &stmt, err);

	while (ret == 0 && (ret = store_day_next(day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		uint32_t labelset =
			packs ? key >> 8 & STORE_DAY_MAX_LABELSETS : store_day_key_labelset(key);

		ret = 0;
		if (!store_sqlite_passes(bits, labelset))
			continue;
		if (packs)
			ret = read_pack(r, key >> 28 & 31, labelset, store_day_blob(stmt, 1));
		else
			ret = read_row(r, key, store_day_blob(stmt, 1));
		if (ret == -EBADMSG) {
			store_day_damaged(day, table, key);
			ret = 0;
		}
		if (ret < 0) {
			store_day_done(stmt);
			return readings_failed(day, ret, err);
		}
	}
	return ret;
}

int store_readings_hour(struct store_readings *r, struct store_day *day, uint32_t stream,
			const uint8_t *bits, unsigned int hour, struct err *err)
{
	const int64_t packs[] = {store_day_pack_key(stream, hour, 0, 0),
				 store_day_pack_key(stream, hour + 1, 0, 0)};
	const int64_t rows[] = {
		store_day_key(stream, (int64_t)hour * STORE_BLOCK_HOUR_MS, 0),
		store_day_key(stream, (int64_t)(hour + 1) * STORE_BLOCK_HOUR_MS, 0)};
	int ret;

	map_release(&r->index);
	r->index = (struct map){0};
	buf_clear(&r->found);
	ret = read_range(r, day, STORE_DAY_PACKS, packs, bits, err);
	return ret < 0 ? ret : read_range(r, day, STORE_DAY_PROFILES, rows, bits, err);
}

const struct store_block_reading *store_readings_get(const struct store_readings *r, int64_t key)
{
	uint64_t i;

	if (!map_get(&r->index, index_key(store_day_key_ms(key), store_day_key_labelset(key)), &i))
		return NULL;
	return (const struct store_block_reading *)(const void *)r->found.data + i;
}
