/* src/store/totals/write.c: see write.h. */
#include "store/totals/write.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "store/sqlite/writer.h"

#define SLOTS (STORE_DAY_MINUTES / STORE_TOTALS_SLOT_MINUTES)
#define KEPT 2 /* minutes that stay in memory after a commit */

void store_totals_writer_release(struct store_totals_writer *t)
{
	for (size_t i = 0; i < t->n_minutes; i++)
		store_totals_minute_release(&t->minutes[i]);
	map_release(&t->types);
	map_release(&t->seen);
	map_release(&t->seen_before);
	*t = (struct store_totals_writer){0};
}

size_t store_totals_writer_memory(const struct store_totals_writer *t)
{
	/* A slot of base/map takes 24 bytes. */
	size_t bytes = (t->types.cap + t->seen.cap + t->seen_before.cap) * 24;

	for (size_t i = 0; i < t->n_minutes; i++)
		bytes += store_totals_minute_memory(&t->minutes[i]);
	return bytes;
}

/* --- types */

static uint64_t type_hash(const char *name, bool snapshot)
{
	return hash_mix(hash_bytes(name, strlen(name)) + snapshot);
}

static int load_types(struct store_writer *w, struct err *err)
{
	struct store_totals_writer *t = &w->totals;
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, STORE_DAY_TOTAL_TYPES, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(&w->day, stmt, err)) > 0) {
		struct view name = store_day_blob(stmt, 1);
		uint64_t hash = hash_mix(hash_bytes(name.data, name.len) +
					 (sqlite3_column_int(stmt, 2) != 0));
		uint32_t id = (uint32_t)sqlite3_column_int64(stmt, 0);

		t->next_type = MAX(t->next_type, id + 1);
		r = map_put(&t->types, hash, id) < 0 ? err_oom(err) : 0;
	}
	t->loaded = r == 0;
	return r;
}

static int add_type(struct store_writer *w, const struct store_totals_point *p, uint64_t hash,
		    struct err *err)
{
	const int64_t args[] = {w->totals.next_type, p->snapshot};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, STORE_DAY_PUT_TOTAL_TYPE, args, 2, &stmt, err), rc;

	if (r < 0)
		return r;
	rc = sqlite3_bind_text(stmt, 3, p->type, -1, SQLITE_STATIC);
	r = rc == SQLITE_OK ? store_day_next(&w->day, stmt, err)
			    : store_day_error(&w->day, rc, err);
	if (r == 0 && map_put(&w->totals.types, hash, w->totals.next_type) < 0)
		r = err_oom(err);
	w->totals.next_type += r == 0;
	return r;
}

/* 1, or 0 if there are too many: these have no totals. */
static int find_type(struct store_writer *w, const struct store_totals_point *p, uint32_t *ret_id,
		     struct err *err)
{
	uint64_t hash = type_hash(p->type, p->snapshot), id;
	int r = w->totals.loaded ? 0 : load_types(w, err);

	if (r < 0)
		return r;
	if (!map_get(&w->totals.types, hash, &id)) {
		if (w->totals.next_type >= STORE_TOTALS_MAX_TYPES)
			return 0;
		id = w->totals.next_type;
		r = add_type(w, p, hash, err);
	}
	*ret_id = (uint32_t)id;
	return r < 0 ? r : 1;
}

/* --- minutes */

static int write_minute(struct store_writer *w, struct store_writer_tools *t,
			struct store_totals_minute *m, struct err *err)
{
	unsigned int slot = m->number / STORE_TOTALS_SLOT_MINUTES;
	const int64_t key = store_day_slot_key(slot);
	int r;

	if (!m->changed)
		return 0;
	r = store_totals_minute_encode(&t->codec, m, &t->block);
	if (r < 0)
		return err_set(err, r, "%s: the totals of a minute cannot be stored", w->day.path);
	r = store_day_put(&w->day, STORE_DAY_PUT_TOTAL, m->number, buf_view(&t->block), err);
	/* What was added up lacks the new points. */
	if (r == 0)
		r = store_day_exec(&w->day, STORE_DAY_DROP_TOTAL, &key, 1, err);
	m->changed = r < 0;
	w->totals.next_slot = MIN(w->totals.next_slot, slot);
	return r;
}

/* Makes room for one more: the oldest goes. */
static int close_oldest(struct store_writer *w, struct store_writer_tools *t, struct err *err)
{
	struct store_totals_writer *totals = &w->totals;
	size_t oldest = 0;
	int r;

	for (size_t i = 1; i < totals->n_minutes; i++)
		if (totals->minutes[i].number < totals->minutes[oldest].number)
			oldest = i;
	r = write_minute(w, t, &totals->minutes[oldest], err);
	if (r < 0)
		return r;
	store_totals_minute_release(&totals->minutes[oldest]);
	totals->minutes[oldest] = totals->minutes[--totals->n_minutes];
	totals->minutes[totals->n_minutes] = (struct store_totals_minute){0};
	return 0;
}

/* Of what was written before, perhaps by another process. */
static int load_minute(struct store_writer *w, struct store_writer_tools *t,
		       struct store_totals_minute *m, struct err *err)
{
	const int64_t range[] = {m->number, (int64_t)m->number + 1};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, STORE_DAY_TOTALS, range, 2, &stmt, err);

	if (r == 0)
		r = store_day_next(&w->day, stmt, err);
	if (r <= 0)
		return r;
	r = store_totals_minute_decode(&t->codec, store_day_blob(stmt, 1), m);
	store_day_done(stmt);
	return r < 0 ? err_set(err, r, "%s: the totals of a minute are damaged", w->day.path) : 0;
}

static int find_minute(struct store_writer *w, struct store_writer_tools *t, uint32_t number,
		       struct store_totals_minute **ret, struct err *err)
{
	struct store_totals_writer *totals = &w->totals;
	struct store_totals_minute *m;
	int r = 0;

	for (size_t i = totals->n_minutes; i > 0; i--)
		if (totals->minutes[i - 1].number == number) {
			*ret = &totals->minutes[i - 1];
			return 0;
		}
	if (totals->n_minutes == STORE_TOTALS_OPEN)
		r = close_oldest(w, t, err);
	if (r < 0)
		return r;
	m = &totals->minutes[totals->n_minutes++];
	m->number = number;
	*ret = m;
	return load_minute(w, t, m, err);
}

int store_totals_write(struct store_writer *w, struct store_writer_tools *t,
		       const struct store_totals_point *p, struct err *err)
{
	struct store_totals_entry e = {
		.service = p->service, .points = p->again ? 0 : 1, .sum = p->value};
	struct store_totals_minute *m = NULL;
	int r;

	/* Services past the limit of a file are not found again, either. */
	if (!store_day_has_totals(&w->day) || p->service > STORE_DAY_MAX_STREAMS)
		return 0;
	r = find_type(w, p, &e.type, err);
	if (r <= 0)
		return r;
	r = find_minute(w, t, (uint32_t)(p->ms / STORE_TOTALS_MINUTE_MS), &m, err);
	if (r == 0 &&
	    store_totals_minute_add(m, &e, (uint32_t)(p->ms % STORE_TOTALS_MINUTE_MS)) < 0)
		r = err_oom(err);
	return r;
}

int store_totals_flush(struct store_writer *w, struct store_writer_tools *t, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->totals.n_minutes; i++)
		r = write_minute(w, t, &w->totals.minutes[i], err);
	while (r == 0 && w->totals.n_minutes > KEPT)
		r = close_oldest(w, t, err);
	return r;
}

/* --- ten minutes */

static int has_slot(struct store_writer *w, unsigned int slot, struct err *err)
{
	const int64_t range[] = {store_day_slot_key(slot), store_day_slot_key(slot + 1)};
	int64_t ignored;

	return store_day_value(&w->day, STORE_DAY_TOTAL_KEYS, range, 2, &ignored, err);
}

static int roll_up_slot(struct store_writer *w, struct store_writer_tools *t, unsigned int slot,
			struct err *err)
{
	const int64_t range[] = {(int64_t)slot * STORE_TOTALS_SLOT_MINUTES,
				 (int64_t)(slot + 1) * STORE_TOTALS_SLOT_MINUTES};
	struct store_totals_slot sum = {0};
	sqlite3_stmt *stmt = NULL;
	int r = has_slot(w, slot, err);

	if (r == 0)
		r = store_day_query(&w->day, STORE_DAY_TOTALS, range, 2, &stmt, err);
	while (r == 0 && (r = store_day_next(&w->day, stmt, err)) > 0) {
		r = store_totals_slot_add(&t->codec, &sum, store_day_blob(stmt, 1),
					  (uint32_t)sqlite3_column_int64(stmt, 0));
		if (r < 0) {
			store_day_done(stmt);
			(void)err_set(err, r, "%s: the totals of a minute are damaged",
				      w->day.path);
		}
	}
	if (r == 0 && sum.entries.len > 0) {
		r = store_totals_slot_encode(&t->codec, &sum, &t->block);
		if (r == 0)
			r = store_day_put(&w->day, STORE_DAY_PUT_TOTAL, store_day_slot_key(slot),
					  buf_view(&t->block), err);
	}
	store_totals_slot_release(&sum);
	return MIN(r, 0);
}

int store_totals_roll_up(struct store_writer *w, struct store_writer_tools *t, int64_t until_ms,
			 struct err *err)
{
	unsigned int end =
		(unsigned int)(MIN(MAX(until_ms, 0), STORE_DAY_MS) / STORE_TOTALS_SLOT_MS);
	int r = 0;

	if (!store_day_has_totals(&w->day) || w->totals.next_slot >= end)
		return 0;
	r = store_writer_begin(w, err);
	/* What is still in memory belongs to it. */
	if (r == 0)
		r = store_totals_flush(w, t, err);
	for (; r == 0 && w->totals.next_slot < MIN(end, (unsigned int)SLOTS);
	     w->totals.next_slot++) {
		r = roll_up_slot(w, t, w->totals.next_slot, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : store_writer_commit(w, t, err);
}

/* --- what has to give way */

static bool has_bit(const uint8_t *bits, uint32_t i)
{
	return bits[i / 8] >> i % 8 & 1;
}

/* Takes the services out; returns whether there were any. */
static bool strip(struct store_totals_minute *m, const uint8_t *services)
{
	struct store_totals_entry *e = (void *)m->entries.data;
	size_t n = m->entries.len / sizeof(*e), kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!has_bit(services, e[i].service))
			e[kept++] = e[i];
	m->entries.len = kept * sizeof(*e);
	return kept < n;
}

static int drop_from_minute(struct store_writer *w, struct store_writer_tools *t, uint32_t number,
			    const uint8_t *services, struct err *err)
{
	struct store_totals_minute m = {.number = number};
	int r = load_minute(w, t, &m, err);

	if (r == 0 && strip(&m, services)) {
		m.changed = true;
		r = write_minute(w, t, &m, err);
	}
	store_totals_minute_release(&m);
	return r;
}

int store_totals_drop(struct store_writer *w, struct store_writer_tools *t,
		      const struct store_totals_drop *drop, struct err *err)
{
	int r;

	if (!store_day_has_totals(&w->day))
		return 0;
	/* Those in memory are read again. */
	r = store_totals_flush(w, t, err);
	while (r == 0 && w->totals.n_minutes > 0)
		r = close_oldest(w, t, err);
	for (uint32_t i = drop->first_hour * 60; r == 0 && i < drop->end_hour * 60; i++)
		r = drop_from_minute(w, t, i, drop->services, err);
	return r;
}
