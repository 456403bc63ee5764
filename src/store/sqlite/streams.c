/* src/store/sqlite/streams.c: the streams and label sets in a window. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "store/codec/labels.h"
#include "store/metrics/stream.h"
#include "store/sqlite/state.h"

struct span {
	int64_t first_ns;
	int64_t last_ns;
};

struct listing {
	int64_t from_ns;
	int64_t to_ns;
	const char *service; /* NULL: all */
	struct intern names; /* of streams; or a service, NUL and a label set as bytes */
	struct buf items;    /* struct store_stream, or struct span */
	struct store_day *day;
	/* Of the day's label sets, and of what is past their limit, by service. first_ns 0: none */
	struct span *spans;
	struct span *others;
	uint32_t current; /* service */
};

/* The time of the first or last point of a stream in the window; 0 if none. */
static int edge_point(struct store_day *day, enum store_day_sql sql, const int64_t range[2],
		      int64_t *ret_ns, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int64_t key = -1;
	int r = store_day_query(day, sql, range, 2, &stmt, err);

	if (r == 0 && (r = store_day_next(day, stmt, err)) > 0)
		key = sqlite3_column_int64(stmt, 0);
	if (r > 0)
		store_day_done(stmt);
	/* Backwards, a damaged page is the end: then forwards, over all of them. */
	if (r == -EBADMSG) {
		r = store_day_query(day, STORE_DAY_POINTS, range, 2, &stmt, err);
		while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
			key = sqlite3_column_int64(stmt, 0);
			r = 0;
		}
	}
	if (r < 0 || key < 0)
		return r;
	*ret_ns = (day->number * STORE_DAY_MS + store_day_key_ms(key)) * 1000000;
	return 1;
}

static int list_stream(struct listing *l, struct view service, struct view type, bool snapshot,
		       struct span span)
{
	struct store_stream s = {.first_ns = span.first_ns, .last_ns = span.last_ns}, *known;
	char name[sizeof(s.service) + sizeof(s.type)] = "";
	uint32_t id;

	if (service.len >= sizeof(s.service) || type.len >= sizeof(s.type)) {
		store_day_damaged(l->day, STORE_DAY_STREAMS, span.first_ns);
		return 0;
	}
	memcpy(s.service, service.data, service.len);
	memcpy(s.type, type.data, type.len);
	memcpy(name, service.data, service.len);
	memcpy(name + service.len + 1, type.data, type.len);
	s.snapshot = snapshot;
	if (intern_add(&l->names, view_of(name, service.len + type.len + 1), &id) < 0)
		return -ENOMEM;
	if (id == l->items.len / sizeof(s))
		return buf_append(&l->items, &s, sizeof(s));
	known = (struct store_stream *)(void *)l->items.data + id;
	known->first_ns = MIN(known->first_ns, span.first_ns);
	known->last_ns = MAX(known->last_ns, span.last_ns);
	return 0;
}

static int list_metric(void *ctx, struct view service, const char *type, bool snapshot,
		       int64_t first_ns, int64_t last_ns)
{
	return list_stream(ctx, service, view_str(type), snapshot,
			   (struct span){first_ns, last_ns});
}

static int list_streams(void *ctx, struct store_day *day, struct err *err)
{
	struct listing *l = ctx;
	struct store_metrics_listing metrics = {
		.from_ns = l->from_ns, .to_ns = l->to_ns, .stream = list_metric, .ctx = l};
	int64_t from_ms, to_ms, first = 0, last = 0;
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);

	l->day = day;
	store_sqlite_day_window(day, l->from_ns, l->to_ns, &from_ms, &to_ms);
	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		const int64_t range[] = {store_day_key((uint32_t)id, from_ms, 0),
					 store_day_key((uint32_t)id, to_ms, 0)};

		r = 0;
		if (id > STORE_DAY_MAX_STREAMS)
			store_day_damaged(day, STORE_DAY_STREAMS, id);
		else
			r = edge_point(day, STORE_DAY_POINT_FIRST, range, &first, err);
		if (r > 0)
			r = edge_point(day, STORE_DAY_POINT_LAST, range, &last, err);
		if (r > 0)
			r = list_stream(l, store_day_blob(stmt, 4), store_day_blob(stmt, 2),
					sqlite3_column_int(stmt, 3) != 0,
					(struct span){first, last});
	}
	if (day->stmts[STORE_DAY_STREAMS])
		store_day_done(day->stmts[STORE_DAY_STREAMS]);
	return r < 0 ? r : store_metrics_list_streams(&metrics, day, err);
}

static int compare_streams(const void *va, const void *vb)
{
	const struct store_stream *a = va, *b = vb;
	int by_service = strcmp(a->service, b->service);

	return by_service ? by_service : strcmp(a->type, b->type);
}

static void listing_release(struct listing *l)
{
	intern_release(&l->names);
	buf_release(&l->items);
}

int store_sqlite_streams(struct store *store, int64_t from_ns, int64_t to_ns,
			 struct store_stream **ret_streams, size_t *ret_len, struct err *err)
{
	_cleanup_(listing_release) struct listing l = {.from_ns = from_ns, .to_ns = to_ns};
	const struct store_sqlite_span span = {from_ns, to_ns, NULL};
	int r = store_sqlite_each_day(store_sqlite(store), &span, list_streams, &l, err);

	if (r < 0)
		return r;
	if (buf_reserve(&l.items, 1) < 0)
		return err_oom(err);
	*ret_len = l.items.len / sizeof(struct store_stream);
	if (*ret_len > 0)
		qsort(l.items.data, *ret_len, sizeof(struct store_stream), compare_streams);
	*ret_streams = (void *)TAKE_PTR(l.items.data);
	return 0;
}

static void widen(struct span *s, int64_t first_ns, int64_t last_ns)
{
	if (s->first_ns == 0 || first_ns < s->first_ns)
		s->first_ns = first_ns;
	s->last_ns = MAX(s->last_ns, last_ns);
}

/* Label set 0 is that of many services. */
static struct span *span_of(const struct listing *l, uint32_t labelset)
{
	return labelset ? &l->spans[labelset] : &l->others[l->current];
}

static int list_metrics_set(void *ctx, uint32_t labelset, int64_t first_ns, int64_t last_ns)
{
	widen(span_of(ctx, labelset), first_ns, last_ns);
	return 0;
}

/* First and last times by label set of the day. */
static int scan_sets(struct listing *l, uint32_t stream, int64_t from_ms, int64_t to_ms,
		     struct err *err)
{
	const int64_t range[] = {store_day_key(stream, from_ms, 0),
				 store_day_key(stream, to_ms, 0)};
	struct store_day *day = l->day;
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_POINTS, range, 2, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		int64_t ns = (day->number * STORE_DAY_MS + store_day_key_ms(key)) * 1000000;

		widen(span_of(l, store_day_key_labelset(key)), ns, ns);
		r = 0;
	}
	return r;
}

static int ignore_label(void *ctx, struct view key, struct view value)
{
	(void)ctx, (void)key, (void)value;
	return 0;
}

static int add_set(struct listing *l, struct view service, struct view kv, const struct span *span)
{
	_cleanup_(buf_release) struct buf name = {0};
	struct span *known;
	uint32_t id;

	if (store_labels_each(kv, ignore_label, NULL) < 0) {
		store_day_damaged(l->day, STORE_DAY_LABELSETS, span->first_ns);
		return 0;
	}
	if (buf_append(&name, service.data, service.len) < 0 || buf_append_byte(&name, 0) < 0 ||
	    buf_append(&name, kv.data, kv.len) < 0 ||
	    intern_add(&l->names, buf_view(&name), &id) < 0)
		return -ENOMEM;
	if (id == l->items.len / sizeof(*span))
		return buf_append(&l->items, span, sizeof(*span));
	known = (struct span *)(void *)l->items.data + id;
	known->first_ns = MIN(known->first_ns, span->first_ns);
	known->last_ns = MAX(known->last_ns, span->last_ns);
	return 0;
}

/* Whether a service of the day is asked for, by its id. */
struct wanted {
	struct intern names;
	uint32_t name_of[STORE_DAY_MAX_STREAMS + 1]; /* number + 1; 0: not wanted */
};

static void wanted_free(struct wanted *w)
{
	if (w)
		intern_release(&w->names);
	free(w);
}
DEFINE_CLEANUP(struct wanted, wanted_free)

static struct view wanted_name(const struct wanted *w, int64_t id)
{
	return intern_get(&w->names, w->name_of[id] - 1);
}

static bool is_wanted(const struct wanted *w, int64_t id)
{
	return id > 0 && id <= STORE_DAY_MAX_STREAMS && w->name_of[id] > 0;
}

static int find_wanted(const struct listing *l, struct wanted *w, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(l->day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(l->day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		struct view name = store_day_blob(stmt, 1);
		uint32_t number;

		r = 0;
		if (l->service && !view_eq(name, view_str(l->service)))
			continue;
		if (id <= 0 || id > STORE_DAY_MAX_STREAMS) {
			store_day_damaged(l->day, STORE_DAY_SERVICES, id);
			continue;
		}
		r = intern_add(&w->names, name, &number);
		w->name_of[id] = number + 1;
	}
	return r;
}

/* Which label sets have data in the window. */
static int find_spans(struct listing *l, const struct wanted *w, struct err *err)
{
	struct store_metrics_listing metrics = {
		.from_ns = l->from_ns, .to_ns = l->to_ns, .labelset = list_metrics_set, .ctx = l};
	struct store_day *day = l->day;
	int64_t from_ms, to_ms;
	sqlite3_stmt *stmt = NULL;
	int r = 0;

	for (uint32_t id = 1; r == 0 && id <= STORE_DAY_MAX_STREAMS; id++) {
		l->current = id;
		if (is_wanted(w, id))
			r = store_metrics_list_labelsets(&metrics, day, id, err);
	}
	if (r == 0)
		r = store_day_query(day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);
	store_sqlite_day_window(day, l->from_ns, l->to_ns, &from_ms, &to_ms);
	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		r = 0;
		if (!is_wanted(w, sqlite3_column_int64(stmt, 1)))
			continue;
		if (id > STORE_DAY_MAX_STREAMS) {
			store_day_damaged(day, STORE_DAY_STREAMS, id);
			continue;
		}
		l->current = (uint32_t)sqlite3_column_int64(stmt, 1);
		r = scan_sets(l, (uint32_t)id, from_ms, to_ms, err);
	}
	return r;
}

static int add_sets(struct listing *l, const struct wanted *w, struct err *err)
{
	struct store_day *day = l->day;
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_LABELSETS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		int64_t service = sqlite3_column_int64(stmt, 1);

		r = 0;
		if (id <= 0 || id > STORE_DAY_MAX_LABELSETS)
			store_day_damaged(day, STORE_DAY_LABELSETS, id);
		else if (is_wanted(w, service) && l->spans[id].first_ns)
			r = add_set(l, wanted_name(w, service), store_day_blob(stmt, 2),
				    &l->spans[id]);
	}
	for (uint32_t id = 1; r == 0 && id <= STORE_DAY_MAX_STREAMS; id++)
		if (is_wanted(w, id) && l->others[id].first_ns)
			r = add_set(l, wanted_name(w, id), view_of("", 1), &l->others[id]);
	return r;
}

static int list_sets(void *ctx, struct store_day *day, struct err *err)
{
	_cleanup_free_ struct span *spans = calloc(STORE_DAY_MAX_LABELSETS + 1, sizeof(*spans));
	_cleanup_free_ struct span *others = calloc(STORE_DAY_MAX_STREAMS + 1, sizeof(*others));
	_cleanup_(wanted_freep) struct wanted *w = calloc(1, sizeof(*w));
	struct listing *l = ctx;
	int r;

	if (!spans || !others || !w)
		return err_oom(err);
	l->day = day;
	l->spans = spans;
	l->others = others;
	r = find_wanted(l, w, err);
	if (r < 0 || w->names.len == 0)
		return r;
	r = find_spans(l, w, err);
	return r < 0 ? r : add_sets(l, w, err);
}

/* One allocation: the sets, their labels, the texts. */
struct packing {
	struct label *label;
	char *text;
	size_t n_labels;
	size_t n_bytes;
};

/* A service and its label set, as in listing.names. */
static struct view split_name(struct view name, struct view *ret_service)
{
	size_t len = strlen((const char *)name.data);

	*ret_service = view_of(name.data, len);
	return view_of(name.data + len + 1, name.len - len - 1);
}

static int measure_label(void *ctx, struct view key, struct view value)
{
	struct packing *p = ctx;

	p->n_labels++;
	p->n_bytes += key.len + value.len + 2;
	return 0;
}

static const char *pack_text(struct packing *p, struct view text)
{
	char *start = p->text;

	if (text.len)
		memcpy(start, text.data, text.len);
	p->text += text.len + 1;
	return start;
}

static int pack_label(void *ctx, struct view key, struct view value)
{
	struct packing *p = ctx;

	p->label->key = pack_text(p, key);
	p->label->value = pack_text(p, value);
	p->label++;
	return 0;
}

int store_sqlite_labelsets(struct store *store, const char *service, int64_t from_ns, int64_t to_ns,
			   struct store_labelset **ret_sets, size_t *ret_len, struct err *err)
{
	_cleanup_(listing_release) struct listing l = {
		.from_ns = from_ns, .to_ns = to_ns, .service = service};
	struct packing p = {0};
	struct store_labelset *sets;
	struct view kv, name;
	uint32_t n;
	const struct store_sqlite_span window = {from_ns, to_ns, NULL};
	int r = store_sqlite_each_day(store_sqlite(store), &window, list_sets, &l, err);

	if (r < 0)
		return r;
	n = l.names.len;
	for (uint32_t i = 0; i < n; i++) {
		kv = split_name(intern_get(&l.names, i), &name);
		p.n_bytes += name.len + 1;
		(void)store_labels_each(kv, measure_label, &p);
	}
	sets = calloc(1, n * sizeof(*sets) + p.n_labels * sizeof(*p.label) + p.n_bytes + 1);
	if (!sets)
		return err_oom(err);
	p.label = (struct label *)(void *)(sets + n);
	p.text = (char *)(p.label + p.n_labels);
	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = (const struct span *)(void *)l.items.data + i;

		kv = split_name(intern_get(&l.names, i), &name);
		sets[i].service = pack_text(&p, name);
		sets[i].labels = p.label;
		(void)store_labels_each(kv, pack_label, &p);
		sets[i].n_labels = (size_t)(p.label - sets[i].labels);
		sets[i].first_ns = span->first_ns;
		sets[i].last_ns = span->last_ns;
	}
	*ret_sets = sets;
	*ret_len = n;
	return 0;
}
