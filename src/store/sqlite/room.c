/*
 * src/store/sqlite/room.c: makes room if the store is over --max-disk. share.h says who has to give
 * way: whole files where nobody else has anything in them, else the rows of a service in a file. In
 * today's file that is hour by hour, and never the current one; an owner that is above its share by
 * that alone is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/codec/block.h"
#include "store/sqlite/owners.h"
#include "store/sqlite/share.h"
#include "store/sqlite/state.h"

#define PAGE_BYTES 4096
/* Some more than needed is freed, so that not every commit has to. */
#define SPARE_PART 16
#define MAX_ROUNDS 1000
#define ALL_HOURS 24U

struct room {
	struct store_sqlite *s;
	struct store_sqlite_file *files;
	size_t n_files;
	uint64_t bytes;	   /* of all of them */
	struct buf shares; /* struct store_share */
	size_t n;
	struct err *err;
};

static void room_release(struct room *m)
{
	free(m->files);
	buf_release(&m->shares);
}

static int list_files(struct room *m)
{
	int r;

	free(TAKE_PTR(m->files));
	r = store_sqlite_files(m->s, &m->files, &m->n_files, m->err);
	m->bytes = 0;
	for (size_t i = 0; r == 0 && i < m->n_files; i++)
		m->bytes += m->files[i].bytes;
	return r;
}

/*
 * The newest that is not set aside: today's, mostly. A clock that was ahead may have left later
 * ones: those do not count, unless there are no others. n_files if there is none.
 */
static size_t current_file(const struct room *m)
{
	int64_t today = m->s->now_ns(m->s->now_ctx) / STORE_DAY_NS;
	size_t current = m->n_files;

	for (size_t i = 0; i < m->n_files; i++)
		if (!m->files[i].damaged && (current == m->n_files || m->files[i].number <= today))
			current = i;
	return current;
}

/* The oldest but the current one; n_files if there is none. */
static size_t oldest_file(const struct room *m)
{
	return current_file(m) == 0 ? MIN(1, m->n_files) : 0;
}

/* --- who has how much */

static int read_size(struct store_day *day, enum store_day_sql sql, int64_t from, int64_t to,
		     uint64_t *bytes, struct err *err)
{
	const int64_t range[] = {from, to};
	int64_t size = 0;
	int r = store_day_value(day, sql, range, 2, &size, err);

	*bytes += (uint64_t)size;
	return MIN(r, 0);
}

static int size_of_service(struct store_day *day, uint32_t id, uint64_t *bytes, struct err *err)
{
	int64_t chunks = (int64_t)id << 32, chunks_end = (int64_t)(id + 1) << 32;
	int r = read_size(day, STORE_DAY_SIZE_FRAMES, chunks, chunks_end, bytes, err);

	if (r == 0)
		r = read_size(day, STORE_DAY_SIZE_STACKS, chunks, chunks_end, bytes, err);
	if (r < 0 || !store_day_has_metrics(day))
		return r;
	r = read_size(day, STORE_DAY_SIZE_READINGS, store_day_key(id, 0, 0),
		      store_day_key(id + 1, 0, 0), bytes, err);
	if (r == 0)
		r = read_size(day, STORE_DAY_SIZE_TIMES, store_day_times_key(id, 0, 0),
			      store_day_times_key(id + 1, 0, 0), bytes, err);
	return r < 0 ? r
		     : read_size(day, STORE_DAY_SIZE_HOURS, store_day_hour_key(id, 0, 0, 0),
				 store_day_hour_key(id + 1, 0, 0, 0), bytes, err);
}

static int size_of_stream(struct store_day *day, uint32_t id, uint64_t *bytes, struct err *err)
{
	int r = read_size(day, STORE_DAY_SIZE_PROFILES, store_day_key(id, 0, 0),
			  store_day_key(id + 1, 0, 0), bytes, err);

	if (r == 0)
		r = read_size(day, STORE_DAY_SIZE_POINTS, store_day_key(id, 0, 0),
			      store_day_key(id + 1, 0, 0), bytes, err);
	if (r == 0)
		r = read_size(day, STORE_DAY_SIZE_PACKS, store_day_pack_key(id, 0, 0, 0),
			      store_day_pack_key(id + 1, 0, 0, 0), bytes, err);
	return r < 0 ? r
		     : read_size(day, STORE_DAY_SIZE_ROLLUPS, store_day_rollup_key(id, 0),
				 store_day_rollup_key(id + 1, 0), bytes, err);
}

static bool is_usable_id(int64_t id)
{
	return id > 0 && id <= STORE_DAY_MAX_STREAMS;
}

/* The services of a file; places: by their ids, to their shares. */
static int add_services(struct room *m, size_t file, struct store_day *day, struct map *places,
			struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		struct view name = store_day_blob(stmt, 1);
		int64_t id = sqlite3_column_int64(stmt, 0);
		struct store_share share = {
			.file = file,
			.service = (uint32_t)id,
			.uid = STORE_OWNER_UNKNOWN,
			.refused = store_sqlite_is_refused(m->s, STORE_OWNER_UNKNOWN),
			.name = hash_bytes(name.data, name.len)};

		r = 0;
		if (!is_usable_id(id))
			continue;
		r = size_of_service(day, share.service, &share.bytes, err);
		if (r == 0 && (map_put(places, share.service, m->n++) < 0 ||
			       buf_append(&m->shares, &share, sizeof(share)) < 0))
			r = err_oom(err);
	}
	if (r < 0 && stmt)
		store_day_done(stmt);
	return r;
}

static struct store_share *share_of(struct room *m, const struct map *places, int64_t service)
{
	uint64_t place;

	return map_get(places, (uint64_t)service, &place)
		       ? (struct store_share *)(void *)m->shares.data + place
		       : NULL;
}

static int add_owners(struct room *m, struct store_day *day, const struct map *places,
		      struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_has_owners(day)
			? store_day_query(day, STORE_DAY_OWNERS, NULL, 0, &stmt, err)
			: 0;

	while (r == 0 && stmt && (r = store_day_next(day, stmt, err)) > 0) {
		struct store_share *share = share_of(m, places, sqlite3_column_int64(stmt, 0));

		r = 0;
		if (!share)
			continue;
		share->uid = (uint32_t)sqlite3_column_int64(stmt, 1);
		share->refused = store_sqlite_is_refused(m->s, share->uid);
	}
	return r;
}

static int add_streams(struct room *m, struct store_day *day, const struct map *places,
		       struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		struct store_share *share = share_of(m, places, sqlite3_column_int64(stmt, 1));
		int64_t id = sqlite3_column_int64(stmt, 0);

		r = 0;
		if (share && is_usable_id(id))
			r = size_of_stream(day, (uint32_t)id, &share->bytes, err);
	}
	if (r < 0 && stmt)
		store_day_done(stmt);
	return r;
}

struct adding {
	struct room *m;
	size_t file;
};

static int add_day(void *ctx, struct store_day *day, struct err *err)
{
	struct adding *a = ctx;
	struct map places = {0};
	int r = add_services(a->m, a->file, day, &places, err);

	if (r == 0)
		r = add_owners(a->m, day, &places, err);
	if (r == 0)
		r = add_streams(a->m, day, &places, err);
	map_release(&places);
	return r;
}

/* What cannot be read belongs to nobody, and goes with its day. */
static int find_shares(struct room *m)
{
	int r = list_files(m);

	buf_clear(&m->shares);
	m->n = 0;
	for (size_t i = 0; r == 0 && i < m->n_files; i++) {
		struct adding a = {.m = m, .file = i};

		r = MIN(store_sqlite_read_file(m->s, &m->files[i], add_day, &a, m->err), 0);
	}
	return r;
}

/* --- giving way */

static int drop_range(struct store_day *day, enum store_day_sql sql, int64_t from, int64_t to,
		      struct err *err)
{
	const int64_t range[] = {from, to};

	return store_day_exec(day, sql, range, 2, err);
}

/* Of a stream: all before an hour. */
static int drop_stream(struct store_day *day, uint32_t id, unsigned int hour, struct err *err)
{
	const int64_t stream = id;
	int64_t begin = store_day_key(id, 0, 0);
	int64_t end = store_day_key(id, (int64_t)hour * STORE_BLOCK_HOUR_MS, 0);
	int r = drop_range(day, STORE_DAY_DROP_PROFILES, begin, end, err);

	if (r == 0)
		r = drop_range(day, STORE_DAY_DROP_POINTS, begin, end, err);
	if (r == 0)
		r = drop_range(day, STORE_DAY_DROP_PACKS, store_day_pack_key(id, 0, 0, 0),
			       store_day_pack_key(id, hour, 0, 0), err);
	if (r == 0)
		r = drop_range(day, STORE_DAY_DROP_ROLLUPS, store_day_rollup_key(id, 0),
			       store_day_rollup_key(id + 1, 0), err);
	return r < 0 ? r : store_day_exec(day, STORE_DAY_DROP_ROLLED, &stream, 1, err);
}

static int drop_metrics(struct store_day *day, uint32_t id, unsigned int hour, struct err *err)
{
	const int64_t hours[] = {store_day_hour_key(id, 0, 0, 0),
				 store_day_hour_key(id + 1, 0, 0, 0), hour};
	int r;

	if (!store_day_has_metrics(day))
		return 0;
	r = drop_range(day, STORE_DAY_DROP_READINGS, store_day_key(id, 0, 0),
		       store_day_key(id, (int64_t)hour * STORE_BLOCK_HOUR_MS, 0), err);
	if (r == 0)
		r = drop_range(day, STORE_DAY_DROP_TIMES, store_day_times_key(id, 0, 0),
			       store_day_times_key(id, hour, 0), err);
	return r < 0 ? r : store_day_exec(day, STORE_DAY_DROP_HOURS, hours, 3, err);
}

/* Its names as well, and its events: the day is over. */
static int drop_dictionary(struct store_day *day, uint32_t id, struct err *err)
{
	int64_t from = (int64_t)id << 32, to = from | UINT32_MAX;
	int r = drop_range(day, STORE_DAY_DROP_FRAMES, from, to, err);

	if (r == 0)
		r = drop_range(day, STORE_DAY_DROP_STACKS, from, to, err);
	return r < 0 || !store_day_has_metrics(day)
		       ? r
		       : drop_range(day, STORE_DAY_DROP_EVENTS, INT64_MAX, id, err);
}

static int drop_streams(struct store_day *day, uint32_t service, unsigned int hour, struct err *err)
{
	_cleanup_(buf_release) struct buf ids = {0};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		r = 0;
		if (sqlite3_column_int64(stmt, 1) == service && is_usable_id(id))
			r = buf_append(&ids, &id, sizeof(id));
	}
	for (size_t i = 0; r == 0 && i < ids.len / sizeof(int64_t); i++)
		r = drop_stream(day, (uint32_t)((const int64_t *)(void *)ids.data)[i], hour, err);
	return r;
}

/* Totals of all services share their rows: whoever is concerned is taken out of them. */
static int drop_totals(struct room *m, struct store_writer *w, size_t file,
		       const struct store_share_verdict *v, unsigned int hour)
{
	const struct store_share *shares = (const void *)m->shares.data;
	uint8_t services[STORE_DAY_MAX_STREAMS / 8 + 1] = {0};
	/* In today's file hours go one by one. */
	const struct store_totals_drop drop = {.services = services,
					       .first_hour = hour == ALL_HOURS ? 0 : hour - 1,
					       .end_hour = hour};
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n; i++) {
		const int64_t id = shares[i].service;

		if (shares[i].file != file || !store_share_concerns(v, &shares[i]))
			continue;
		services[id / 8] |= (uint8_t)(1U << id % 8);
		if (hour == ALL_HOURS && store_day_has_totals(&w->day))
			r = store_day_exec(&w->day, STORE_DAY_DROP_ABOUT, &id, 1, m->err);
	}
	return r < 0 ? r : store_totals_drop(w, &m->s->tools, &drop, m->err);
}

/* What those concerned have in a file before an hour. */
static int drop_shares(struct room *m, struct store_writer *w, size_t file,
		       const struct store_share_verdict *v, unsigned int hour)
{
	const struct store_share *shares = (const void *)m->shares.data;
	int r = store_writer_begin(w, m->err);

	if (r == 0)
		r = drop_totals(m, w, file, v, hour);
	for (size_t i = 0; r == 0 && i < m->n; i++) {
		if (shares[i].file != file || !store_share_concerns(v, &shares[i]))
			continue;
		r = drop_streams(&w->day, shares[i].service, hour, m->err);
		if (r == 0)
			r = drop_metrics(&w->day, shares[i].service, hour, m->err);
		if (r == 0 && hour == ALL_HOURS)
			r = drop_dictionary(&w->day, shares[i].service, m->err);
	}
	return r < 0 ? r : store_writer_commit(w, &m->s->tools, m->err);
}

static uint64_t free_bytes(struct store_writer *w)
{
	sqlite3_stmt *stmt = NULL;
	uint64_t pages = 0;

	if (sqlite3_prepare_v2(w->day.db, "PRAGMA freelist_count", -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		pages = (uint64_t)sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return pages * PAGE_BYTES;
}

/* Gives the pages that are free back to the file system. */
static void shrink_file(struct store_writer *w)
{
	(void)sqlite3_exec(w->day.db, "PRAGMA incremental_vacuum", NULL, NULL, NULL);
	(void)sqlite3_wal_checkpoint_v2(w->day.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

/* The hour that must stay: the current one, if it is of this day. */
static unsigned int last_hour(const struct room *m, size_t file)
{
	int64_t now = m->s->now_ns(m->s->now_ctx) - m->files[file].number * STORE_DAY_NS;
	int64_t hour = now / (STORE_BLOCK_HOUR_MS * 1000000LL);

	return (unsigned int)MIN(MAX(hour, 0), 23);
}

/* Takes hours from the newest file, oldest first, until it is small enough. */
static int trim_newest(struct room *m, size_t file, const struct store_share_verdict *v,
		       uint64_t wanted)
{
	struct store_writer *w = NULL;
	unsigned int last = last_hour(m, file);
	int r = store_sqlite_writer(m->s, m->files[file].number, &w, m->err);

	if (r == 0)
		r = store_sqlite_commit_writer(m->s, w, m->err);
	for (unsigned int hour = 1; r == 0 && hour <= last; hour++) {
		r = drop_shares(m, w, file, v, hour);
		if (r == 0 && free_bytes(w) >= wanted)
			break;
	}
	if (r == 0)
		shrink_file(w);
	return r;
}

static int trim_past(struct room *m, size_t file, const struct store_share_verdict *v)
{
	struct store_writer *w = NULL;
	int r = store_sqlite_writer(m->s, m->files[file].number, &w, m->err);

	if (r == 0)
		r = store_sqlite_commit_writer(m->s, w, m->err);
	if (r == 0)
		r = drop_shares(m, w, file, v, ALL_HOURS);
	if (r < 0)
		return r;
	shrink_file(w);
	/* What is known of its dictionaries is no longer so. */
	store_writer_close(w);
	return 0;
}

/* Whether only those concerned have anything in the file. */
static bool is_theirs(const struct room *m, size_t file, const struct store_share_verdict *v)
{
	const struct store_share *shares = (const void *)m->shares.data;

	for (size_t i = 0; i < m->n; i++)
		if (shares[i].file == file && shares[i].bytes > 0 &&
		    !store_share_concerns(v, &shares[i]))
			return false;
	return true;
}

static bool is_concerned(const struct room *m, size_t file, const struct store_share_verdict *v)
{
	const struct store_share *shares = (const void *)m->shares.data;

	for (size_t i = 0; i < m->n; i++)
		if (shares[i].file == file && shares[i].bytes > 0 &&
		    store_share_concerns(v, &shares[i]))
			return true;
	return false;
}

/*
 * The oldest file in which those concerned have anything; n_files if there is none. One that was
 * set aside is not written, so it can only go as a whole.
 */
static size_t oldest_of(const struct room *m, const struct store_share_verdict *v)
{
	size_t file = 0;

	while (file < m->n_files &&
	       (!is_concerned(m, file, v) || (m->files[file].damaged && !is_theirs(m, file, v))))
		file++;
	return file;
}

/* 1 if something was done, 0 if there is nothing left to do. */
static int give_way(struct room *m, const struct store_share_verdict *v, uint64_t wanted)
{
	size_t file = v->kind == STORE_SHARE_DAY ? oldest_file(m) : oldest_of(m, v);
	int r;

	if (file >= m->n_files)
		return 0;
	if (file != current_file(m)) {
		if (v->kind == STORE_SHARE_DAY || is_theirs(m, file, v)) {
			store_sqlite_remove_file(m->s, &m->files[file]);
			return 1;
		}
		r = trim_past(m, file, v);
		return r < 0 ? r : 1;
	}
	r = trim_newest(m, file, v, wanted);
	return r < 0 ? r : 0;
}

static void refuse(struct store_sqlite *s, const struct store_share_verdict *v)
{
	size_t len = strlen(s->refusal);

	s->refused[s->n_refused++] = v->uid;
	s->all_refused = v->owners <= s->n_refused;
	if (s->n_refused > 1) {
		(void)snprintf(s->refusal + len, sizeof(s->refusal) - len, "; nor of uid %u",
			       v->uid);
		return;
	}
	(void)snprintf(s->refusal, sizeof(s->refusal),
		       "%llu MB of the current hour are of uid %u, more than its share of "
		       "--max-disk (%llu MB): no more of it is stored until there is room",
		       (unsigned long long)v->has >> 20, v->uid,
		       (unsigned long long)v->share >> 20);
}

static void tell(struct store_sqlite *s, const struct store_share_verdict *v)
{
	if (v->kind == STORE_SHARE_DAY)
		return;
	(void)pthread_mutex_lock(&s->status_lock);
	(void)snprintf(s->status.budget, sizeof(s->status.budget),
		       "uid %u uses %llu MB, more than its share of --max-disk (%llu MB): its "
		       "oldest data is deleted first",
		       v->uid, (unsigned long long)v->has >> 20,
		       (unsigned long long)v->share >> 20);
	(void)pthread_mutex_unlock(&s->status_lock);
}

int store_sqlite_make_room(struct store_sqlite *s, struct err *err)
{
	_cleanup_(room_release) struct room m = {.s = s, .err = err};
	uint64_t target = s->max_bytes - s->max_bytes / SPARE_PART;
	int r = 1;

	s->n_refused = 0;
	/* What is in a log has its room in the day as well, or will have. */
	for (size_t i = 0; i < STORE_SQLITE_WRITERS; i++)
		if (s->writers[i].open)
			store_writer_write_back(&s->writers[i]);
	for (int round = 0; r > 0 && round < MAX_ROUNDS; round++) {
		struct store_share_verdict v;

		r = find_shares(&m);
		if (r < 0 || m.bytes <= (round ? target : s->max_bytes))
			return r;
		v = store_share_judge((void *)m.shares.data, m.n, s->max_bytes);
		/* What is too much is of those who are refused, until their hour has passed. */
		if (v.kind == STORE_SHARE_DAY && s->n_refused > 0)
			return 0;
		/* Nobody is above its share, and there is no other day. */
		if (v.kind == STORE_SHARE_DAY && oldest_file(&m) == m.n_files)
			v.kind = STORE_SHARE_OWNER;
		tell(s, &v);
		r = give_way(&m, &v, m.bytes - target);
		if (r == 0 && (r = list_files(&m)) == 0 && m.bytes > s->max_bytes &&
		    s->n_refused < ARRAY_SIZE(s->refused)) {
			refuse(s, &v);
			r = 1;
		}
	}
	return r;
}
