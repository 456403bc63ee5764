/*
 * src/store/sqlite/events.c: see events.h. The profile of an event is an ordinary one, of the
 * family of its kind, under the time and the labels of the event.
 *
 *   data   texts (varint length, bytes): kind, sentence, family of the profile, "" for none
 *          varint n, then n times key and value
 */
#include "store/sqlite/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/event.h"
#include "store/codec/labels.h"
#include "store/sqlite/state.h"

#define MAX_EVENTS_AT_ONCE (1U << 20) /* in one millisecond */

static int put_text(struct buf *out, const char *text)
{
	int r = buf_append_varint(out, strlen(text));

	return r < 0 ? r : buf_append_str(out, text);
}

static int encode(const struct event *e, struct buf *out)
{
	int r = store_codec_begin(out, STORE_CODEC_EVENT);

	if (r == 0)
		r = put_text(out, e->kind->name);
	if (r == 0)
		r = put_text(out, e->sentence);
	if (r == 0)
		r = put_text(out, e->profile && e->kind->family ? e->kind->family : "");
	if (r == 0)
		r = buf_append_varint(out, e->n_attributes);
	for (size_t i = 0; r == 0 && i < e->n_attributes; i++) {
		r = put_text(out, e->attributes[i].key);
		if (r == 0)
			r = put_text(out, e->attributes[i].value);
	}
	if (r == 0)
		store_codec_end(out);
	return r;
}

/* The next free number within a millisecond. */
static int next_number(struct store_writer *w, int64_t ms, uint32_t *ret, struct err *err)
{
	const int64_t range[] = {store_day_event_key(ms, 0), store_day_event_key(ms + 1, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, STORE_DAY_EVENT_LAST, range, 2, &stmt, err);

	if (r == 0)
		r = store_day_next(&w->day, stmt, err);
	if (r <= 0)
		return r;
	*ret = 0;
	if (sqlite3_column_type(stmt, 0) != SQLITE_NULL)
		*ret = (uint32_t)(sqlite3_column_int64(stmt, 0) - range[0]) + 1;
	store_day_done(stmt);
	return 0;
}

static int put_event(struct store_writer *w, struct store_writer_tools *t, int64_t ms,
		     uint32_t service, uint32_t labelset, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	uint32_t number = 0;
	int64_t key;
	int r = next_number(w, ms, &number, err);

	if (r < 0)
		return r;
	if (number == MAX_EVENTS_AT_ONCE)
		return err_set(err, -E2BIG, "too many events at one time");
	key = store_day_event_key(ms, number);
	r = store_day_query(&w->day, STORE_DAY_PUT_EVENT, &key, 1, &stmt, err);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 3, service);
	(void)sqlite3_bind_int64(stmt, 4, labelset);
	return store_day_put(&w->day, STORE_DAY_PUT_EVENT, key, buf_view(&t->block), err);
}

int store_events_write(struct store_writer *w, struct store_writer_tools *t,
		       const struct store_event *e, struct err *err)
{
	const struct store_entry entry = {
		.service = e->service,
		.uid = e->uid,
		.family = e->event->kind->family,
		.labels = e->labels,
		.n_labels = e->n_labels,
		.time_ns = e->time_ns,
		.duration_ns = e->duration_ns,
		.profile = e->event->profile,
		.snapshot_types = e->event->snapshot_types,
	};
	uint32_t labelset = 0;
	struct store_dict *d = NULL;
	int r = 0;

	/* First: if it is too large, the event is refused as well. */
	if (entry.profile && entry.family)
		r = store_writer_write(w, t, &entry, err);
	if (r == 0)
		r = store_writer_begin_entry(w, t, e->service, e->labels, e->n_labels, err);
	if (r == 0)
		r = store_writer_service(w, t, e->service, e->uid, &d, err);
	if (r == 0)
		r = store_writer_labelset(w, t, d, &labelset, err);
	if (r == 0 && encode(e->event, &t->block) < 0)
		r = err_oom(err);
	if (r == 0)
		r = put_event(w, t, e->time_ns / 1000000 - w->day.number * STORE_DAY_MS, d->service,
			      labelset, err);
	w->events += r == 0;
	return r;
}

/* --- reading */

struct listing {
	const char *service; /* NULL: all */
	int64_t from_ns;
	int64_t to_ns;
	struct store_events_answer answer;
	struct buf events; /* struct store_stored_event */
	struct store_day *day;
	/* Texts of the day, by id; data NULL if not needed. */
	struct map services;
	struct map labelsets; /* to struct labels_kept */
};

struct labels_kept {
	const struct label *labels;
	size_t n;
};

static void listing_release(struct listing *l)
{
	arena_release(&l->answer.memory);
	buf_release(&l->events);
	map_release(&l->services);
	map_release(&l->labelsets);
}

static const char *keep_text(struct listing *l, struct view text)
{
	char *copy = arena_alloc(&l->answer.memory, text.len + 1);

	if (copy && text.len)
		memcpy(copy, text.data, text.len);
	return copy;
}

static bool get_text(struct view body, size_t *at, struct view *ret)
{
	uint64_t len;

	if (!view_varint(body, at, &len) || !view_sub(body, *at, len, ret))
		return false;
	*at += len;
	return true;
}

static const char *take_text(struct listing *l, struct view body, size_t *at)
{
	struct view text;

	return get_text(body, at, &text) ? keep_text(l, text) : NULL;
}

static int decode(struct listing *l, struct view block, struct store_stored_event *e)
{
	struct label *attributes;
	struct store_cursor c;
	struct view body;
	size_t at = 0;
	uint64_t n;
	int r = store_codec_open(block, STORE_CODEC_EVENT, &c);

	if (r < 0)
		return r;
	body = view_of(c.at, store_cursor_left(&c));
	e->kind = take_text(l, body, &at);
	e->sentence = take_text(l, body, &at);
	e->family = take_text(l, body, &at);
	if (!e->kind || !e->sentence || !e->family || !view_varint(body, &at, &n) ||
	    n > EVENT_MAX_ATTRIBUTES)
		return -EBADMSG;
	attributes = arena_alloc(&l->answer.memory, (n + 1) * sizeof(*attributes));
	if (!attributes)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		attributes[i].key = take_text(l, body, &at);
		attributes[i].value = take_text(l, body, &at);
		if (!attributes[i].key || !attributes[i].value)
			return -EBADMSG;
	}
	e->attributes = attributes;
	e->n_attributes = n;
	return 0;
}

struct keeping {
	struct listing *l;
	struct label labels[STORE_LABELS_MAX];
	size_t n;
};

static int keep_label(void *ctx, struct view key, struct view value)
{
	struct keeping *k = ctx;
	struct label label = {keep_text(k->l, key), keep_text(k->l, value)};

	if (!label.key || !label.value)
		return -ENOMEM;
	k->labels[k->n++] = label;
	return 0;
}

/* The service and label set of one event, which most events share. */
static int describe(struct listing *l, struct store_stored_event *e, int64_t labelset)
{
	const int64_t id = labelset;
	struct keeping k = {.l = l};
	sqlite3_stmt *stmt = NULL;
	uint64_t known;
	int r;

	if (map_get(&l->labelsets, (uint64_t)labelset, &known)) {
		const struct labels_kept *kept = (const void *)(uintptr_t)known;

		e->labels = kept->labels;
		e->n_labels = kept->n;
		return 0;
	}
	r = store_day_query(l->day, STORE_DAY_LABELSET, &id, 1, &stmt, NULL);
	if (r == 0 && (r = store_day_next(l->day, stmt, NULL)) > 0) {
		r = store_labels_each(store_day_blob(stmt, 0), keep_label, &k);
		store_day_done(stmt);
	}
	if (r < 0)
		return r;
	struct labels_kept *kept = arena_alloc(&l->answer.memory, sizeof(*kept));

	e->labels = arena_dup(&l->answer.memory, k.labels, k.n * sizeof(*k.labels));
	e->n_labels = k.n;
	if (!kept || !e->labels)
		return -ENOMEM;
	*kept = (struct labels_kept){e->labels, e->n_labels};
	return map_put(&l->labelsets, (uint64_t)labelset, (uintptr_t)kept);
}

static int list_event(struct listing *l, sqlite3_stmt *stmt)
{
	int64_t key = sqlite3_column_int64(stmt, 0);
	struct store_stored_event e = {
		.time_ns = (l->day->number * STORE_DAY_MS + (key >> 20)) * 1000000,
	};
	uint64_t service;
	int r;

	if (!map_get(&l->services, (uint64_t)sqlite3_column_int64(stmt, 1), &service)) {
		store_day_damaged(l->day, STORE_DAY_EVENTS, key);
		return 0;
	}
	e.service = (const char *)(uintptr_t)service;
	if (l->service && strcmp(e.service, l->service) != 0)
		return 0;
	r = decode(l, store_day_blob(stmt, 3), &e);
	if (r == 0)
		r = describe(l, &e, sqlite3_column_int64(stmt, 2));
	if (r == -EBADMSG) {
		store_day_damaged(l->day, STORE_DAY_EVENTS, key);
		return 0;
	}
	return r < 0 ? r : buf_append(&l->events, &e, sizeof(e));
}

static int list_services(struct listing *l, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(l->day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);

	map_release(&l->services);
	map_release(&l->labelsets);
	while (r == 0 && (r = store_day_next(l->day, stmt, err)) > 0) {
		const char *name = keep_text(l, store_day_blob(stmt, 1));

		r = 0;
		if (!name || map_put(&l->services, (uint64_t)sqlite3_column_int64(stmt, 0),
				     (uintptr_t)name) < 0) {
			store_day_done(stmt);
			r = err_oom(err);
		}
	}
	return r;
}

static int list_day(void *ctx, struct store_day *day, struct err *err)
{
	struct listing *l = ctx;
	int64_t from_ms, to_ms;
	sqlite3_stmt *stmt = NULL;
	int r;

	if (!store_day_has_metrics(day))
		return 0;
	l->day = day;
	store_sqlite_day_window(day, l->from_ns, l->to_ns, &from_ms, &to_ms);
	const int64_t range[] = {store_day_event_key(from_ms, 0), store_day_event_key(to_ms, 0)};

	r = list_services(l, err);
	if (r == 0)
		r = store_day_query(day, STORE_DAY_EVENTS, range, 2, &stmt, err);
	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0)
		r = list_event(l, stmt);
	if (r < 0 && stmt)
		store_day_done(stmt);
	return r == -ENOMEM ? err_oom(err) : r;
}

int store_sqlite_events(struct store *store, const char *service, int64_t from_ns, int64_t to_ns,
			struct store_events_answer *ret_answer, struct err *err)
{
	_cleanup_(listing_release) struct listing l = {
		.service = service, .from_ns = from_ns, .to_ns = to_ns};
	const struct store_sqlite_span span = {from_ns, to_ns, &l.answer.damaged};
	int r = store_sqlite_each_day(store_sqlite(store), &span, list_day, &l, err);

	if (r < 0)
		return r;
	l.answer.len = l.events.len / sizeof(*l.answer.events);
	l.answer.events = arena_dup(&l.answer.memory, l.events.data, l.events.len);
	if (!l.answer.events)
		return err_oom(err);
	*ret_answer = l.answer;
	l.answer = (struct store_events_answer){0};
	return 0;
}
