/*
 * src/store/sqlite/pack.c: turns past hours into packs and past days into roll-ups. A pack replaces
 * its collections in one transaction, so a reader sees one or the other; later arrivals for the
 * same hour become another part.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/block.h"
#include "store/metrics/pack.h"
#include "store/sqlite/state.h"

struct pack_stream {
	uint32_t id;
	uint32_t service;
	bool snapshot;
};

/* One hour of one process, to be packed. */
struct packer {
	struct store_writer *w;
	struct store_writer_tools *tools;
	struct buf keys;     /* int64_t: collections of the hour, by label set, then time */
	struct buf times_ms; /* uint32_t, in the hour */
	struct buf samples;  /* struct store_block_sample */
	struct buf sorted;
	struct buf values;
	uint32_t *starts; /* by stack id */
	bool packed;	  /* anything */
	bool left;	  /* some of the hour's collections did not fit */
};

static void packer_release(struct packer *p)
{
	buf_release(&p->keys);
	buf_release(&p->times_ms);
	buf_release(&p->samples);
	buf_release(&p->sorted);
	buf_release(&p->values);
	free(p->starts);
}

static int compare_keys(const void *va, const void *vb)
{
	int64_t a = *(const int64_t *)va, b = *(const int64_t *)vb;
	uint32_t set_a = store_day_key_labelset(a), set_b = store_day_key_labelset(b);

	if (set_a != set_b)
		return set_a < set_b ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int list_keys(struct packer *p, uint32_t stream, unsigned int hour, struct err *err)
{
	const int64_t range[] = {
		store_day_key(stream, (int64_t)hour * STORE_BLOCK_HOUR_MS, 0),
		store_day_key(stream, (int64_t)(hour + 1) * STORE_BLOCK_HOUR_MS, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&p->w->day, STORE_DAY_PROFILE_KEYS, range, 2, &stmt, err);

	buf_clear(&p->keys);
	while (r == 0 && (r = store_day_next(&p->w->day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);

		r = buf_append(&p->keys, &key, sizeof(key));
	}
	if (r == 0 && p->keys.len > 0)
		qsort(p->keys.data, p->keys.len / sizeof(int64_t), sizeof(int64_t), compare_keys);
	return r;
}

/* Reads one collection and appends its samples. */
static int take_row(struct packer *p, int64_t key, struct err *err)
{
	uint32_t time = (uint32_t)(p->times_ms.len / sizeof(uint32_t));
	struct store_block_sample *samples;
	uint32_t ms = (uint32_t)(store_day_key_ms(key) % STORE_BLOCK_HOUR_MS);
	const struct store_block_value *values;
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&p->w->day, STORE_DAY_GET_PROFILE, &key, 1, &stmt, err);

	if (r == 0)
		r = store_day_next(&p->w->day, stmt, err);
	if (r <= 0)
		return r;
	buf_clear(&p->values);
	r = store_block_decode_sums(&p->tools->codec, store_day_blob(stmt, 0), &p->values);
	store_day_done(stmt);
	if (r == 0)
		r = buf_append(&p->times_ms, &ms, sizeof(ms));
	if (r == 0)
		r = buf_reserve(&p->samples,
				p->values.len / sizeof(*values) * sizeof(*samples) + 1);
	if (r < 0)
		return err_set(err, r, "%s: cannot pack a collection", p->w->day.path);
	values = (const void *)p->values.data;
	samples = (void *)(p->samples.data + p->samples.len);
	for (size_t i = 0; i < p->values.len / sizeof(*values); i++)
		samples[i] = (struct store_block_sample){
			.stack = values[i].stack, .time = time, .value = values[i].value};
	p->samples.len += p->values.len / sizeof(*values) * sizeof(*samples);
	return 0;
}

/* Stable sort by stack; samples of a stack stay ordered by time. */
static int sort_samples(struct packer *p)
{
	size_t n = p->samples.len / sizeof(struct store_block_sample);
	const struct store_block_sample *from = (const void *)p->samples.data;
	struct store_block_sample *to;
	uint32_t most = 0, at = 0;

	buf_clear(&p->sorted);
	if (buf_reserve(&p->sorted, p->samples.len + 1) < 0)
		return -ENOMEM;
	to = (void *)p->sorted.data;
	for (size_t i = 0; i < n; i++)
		most = MAX(most, from[i].stack);
	memset(p->starts, 0, (most + 1) * sizeof(*p->starts));
	for (size_t i = 0; i < n; i++)
		p->starts[from[i].stack]++;
	for (uint32_t i = 0; i <= most; i++) {
		uint32_t count = p->starts[i];

		p->starts[i] = at;
		at += count;
	}
	for (size_t i = 0; i < n; i++)
		to[p->starts[from[i].stack]++] = from[i];
	return 0;
}

/* The number of the next part of a pack; STORE_DAY_MAX_PARTS if full. */
static int next_part(struct packer *p, int64_t first_key, unsigned int *ret_part, struct err *err)
{
	const int64_t range[] = {first_key, first_key + STORE_DAY_MAX_PARTS - 1};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&p->w->day, STORE_DAY_PACK_LAST, range, 2, &stmt, err);

	if (r == 0)
		r = store_day_next(&p->w->day, stmt, err);
	if (r <= 0)
		return r;
	*ret_part = 0;
	if (sqlite3_column_type(stmt, 0) != SQLITE_NULL)
		*ret_part = (unsigned int)(sqlite3_column_int64(stmt, 0) - first_key) + 1;
	store_day_done(stmt);
	return 0;
}

/* Writes the collected samples as one part. */
static int put_pack(struct packer *p, int64_t key, bool snapshot, struct err *err)
{
	struct store_block_hour hour = {
		.n_times = p->times_ms.len / sizeof(uint32_t),
		.n_samples = p->samples.len / sizeof(struct store_block_sample),
	};
	int r = sort_samples(p);

	hour.times_ms = (const void *)p->times_ms.data;
	hour.samples = (const void *)p->sorted.data;
	if (r == 0)
		r = store_block_encode_pack(&p->tools->codec, &hour, snapshot, &p->tools->block);
	if (r < 0)
		return err_set(err, r, "%s: cannot pack an hour", p->w->day.path);
	p->packed = true;
	buf_clear(&p->times_ms);
	buf_clear(&p->samples);
	return store_day_put(&p->w->day, STORE_DAY_PUT_PACK, key, buf_view(&p->tools->block), err);
}

/* n collections of one label set; keys of those that do not fit become 0. */
static int pack_labelset(struct packer *p, const struct pack_stream *s, unsigned int hour,
			 int64_t *keys, size_t n, struct err *err)
{
	int64_t first = store_day_pack_key(s->id, hour, store_day_key_labelset(keys[0]), 0);
	unsigned int part = STORE_DAY_MAX_PARTS;
	size_t i;
	int r = next_part(p, first, &part, err);

	buf_clear(&p->times_ms);
	buf_clear(&p->samples);
	for (i = 0; r == 0 && i < n && part < STORE_DAY_MAX_PARTS; i++) {
		r = take_row(p, keys[i], err);
		/* A damaged one stays, as the witness of what is missing. */
		if (r == -EBADMSG) {
			store_day_damaged(&p->w->day, STORE_DAY_PROFILES, keys[i]);
			keys[i] = 0;
			p->left = true;
			r = 0;
		}
		/* Half the limit: one collection adds at most STORE_BLOCK_MAX_STACK. */
		if (r == 0 && p->times_ms.len > 0 &&
		    (i + 1 == n || p->samples.len / sizeof(struct store_block_sample) >
					   STORE_BLOCK_MAX_SAMPLES / 2))
			r = put_pack(p, first + part++, s->snapshot, err);
	}
	for (; i < n; i++) {
		keys[i] = 0;
		p->left = true;
	}
	return r;
}

/* Deletes what was packed: mostly the whole hour, in one statement. */
static int drop_rows(struct packer *p, uint32_t stream, unsigned int hour, struct err *err)
{
	const int64_t range[] = {
		store_day_key(stream, (int64_t)hour * STORE_BLOCK_HOUR_MS, 0),
		store_day_key(stream, (int64_t)(hour + 1) * STORE_BLOCK_HOUR_MS, 0)};
	const int64_t *keys = (const void *)p->keys.data;
	int r = 0;

	if (!p->left)
		return store_day_exec(&p->w->day, STORE_DAY_DROP_PROFILES, range, 2, err);
	for (size_t i = 0; r == 0 && i < p->keys.len / sizeof(*keys); i++)
		if (keys[i] != 0)
			r = store_day_exec(&p->w->day, STORE_DAY_DROP_PROFILE, &keys[i], 1, err);
	return r;
}

static int pack_hour(struct packer *p, const struct pack_stream *s, unsigned int hour,
		     struct err *err)
{
	int64_t *keys;
	size_t n, len;
	int r = list_keys(p, s->id, hour, err);

	if (r < 0)
		return r;
	keys = (void *)p->keys.data;
	n = p->keys.len / sizeof(*keys);
	p->left = false;
	for (size_t i = 0; r == 0 && i < n; i += len) {
		for (len = 1; i + len < n; len++)
			if (store_day_key_labelset(keys[i + len]) !=
			    store_day_key_labelset(keys[i]))
				break;
		r = pack_labelset(p, s, hour, keys + i, len, err);
	}
	return r == 0 && n > 0 ? drop_rows(p, s->id, hour, err) : r;
}

static int list_streams(struct store_writer *w, struct buf *ret_streams, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(&w->day, stmt, err)) > 0) {
		struct pack_stream s = {
			.id = (uint32_t)sqlite3_column_int64(stmt, 0),
			.service = (uint32_t)sqlite3_column_int64(stmt, 1),
			.snapshot = sqlite3_column_int(stmt, 3) != 0,
		};

		r = s.id > STORE_DAY_MAX_STREAMS ? -EBADMSG
						 : buf_append(ret_streams, &s, sizeof(s));
	}
	return r;
}

static int merge_services(struct packer *p, const struct pack_stream *streams, size_t n,
			  bool always, struct err *err)
{
	uint32_t last = 0;
	int r = 0;

	/* Streams of a service are mostly adjacent; a second merge finds nothing to do. */
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (streams[i].service == last)
			continue;
		last = streams[i].service;
		r = store_sqlite_merge_chunks(p->w, p->tools, last, always, err);
	}
	return r;
}

/* An hour of all streams, in one transaction. */
static int pack_streams(struct packer *p, const struct pack_stream *streams, size_t n,
			unsigned int hour, struct err *err)
{
	int r = store_writer_begin(p->w, err);

	p->packed = false;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = pack_hour(p, &streams[i], hour, err);
	if (r == 0)
		r = store_metrics_pack_hour(p->w, p->tools, hour, err);
	if (r == 0 && p->packed)
		r = merge_services(p, streams, n, false, err);
	return r < 0 ? r : store_writer_commit(p->w, p->tools, err);
}

static void write_back_again(struct store_sqlite *s, int64_t number)
{
	for (size_t i = 0; i < STORE_SQLITE_WRITERS; i++)
		if (s->writers[i].open && s->writers[i].day.number == number &&
		    s->writers[i].log_left)
			store_writer_write_back(&s->writers[i]);
}

/* Roll-ups, and dictionaries in as few chunks as possible: the day is over. */
static int finish_day(struct store_sqlite *s, struct packer *p, const struct pack_stream *streams,
		      size_t n, struct err *err)
{
	int r = store_writer_begin(p->w, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = store_sqlite_roll_up(p->w, &s->tools, streams[i].id, err);
	if (r == 0)
		r = merge_services(p, streams, n, true, err);
	if (r == 0)
		r = store_writer_commit(p->w, &s->tools, err);
	if (r == 0)
		r = store_totals_roll_up(p->w, &s->tools, STORE_DAY_MS, err);
	if (r == 0)
		(void)sqlite3_exec(p->w->day.db, "PRAGMA incremental_vacuum", NULL, NULL, NULL);
	return r;
}

static int pack_hours(struct store_sqlite *s, struct packer *p, uint64_t from, uint64_t to,
		      struct err *err)
{
	_cleanup_(buf_release) struct buf streams = {0};
	int64_t number = p->w->day.number;
	const struct pack_stream *list;
	size_t n;
	int r = store_sqlite_commit_writer(s, p->w, err);

	if (r == 0)
		r = list_streams(p->w, &streams, err);
	list = (const void *)streams.data;
	n = streams.len / sizeof(*list);
	for (uint64_t hour = from; r == 0 && hour < MIN(to, 24); hour++)
		r = pack_streams(p, list, n, (unsigned int)hour, err);
	if (r == 0 && to == STORE_SQLITE_ROLLED_UP)
		r = finish_day(s, p, list, n, err);
	if (r == 0)
		store_writer_write_back(p->w);
	store_sqlite_count_damage(s, &p->w->day);
	if (r == 0 && map_put(&s->settled, (uint64_t)number, to) < 0)
		r = err_oom(err);
	return r;
}

int store_sqlite_pack_day(struct store_sqlite *s, int64_t number, int64_t now_ns, struct err *err)
{
	_cleanup_(packer_release) struct packer p = {.tools = &s->tools};
	int64_t past_ns = now_ns - STORE_SQLITE_GRACE_NS - number * STORE_DAY_NS;
	uint64_t settled = 0, hours;
	int r;

	(void)map_get(&s->settled, (uint64_t)number, &settled);
	if (past_ns < STORE_BLOCK_HOUR_MS * 1000000LL)
		return 0;
	hours = past_ns < STORE_DAY_NS ? (uint64_t)(past_ns / (STORE_BLOCK_HOUR_MS * 1000000LL))
				       : STORE_SQLITE_ROLLED_UP;
	if (settled >= hours) {
		write_back_again(s, number);
		return 0;
	}
	p.starts = calloc(STORE_BLOCK_MAX_STACK + 1, sizeof(*p.starts));
	if (!p.starts)
		return err_oom(err);
	r = store_sqlite_writer(s, number, &p.w, err);
	if (r == 0)
		r = pack_hours(s, &p, settled, hours, err);
	if (r == 0 && hours == STORE_SQLITE_ROLLED_UP)
		store_writer_close(p.w);
	return r;
}
