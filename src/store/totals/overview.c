/*
 * src/store/totals/overview.c: totals of all services over a window: ten minutes at a time where
 * they are added up and within a step, else minute by minute; of days without totals, from points.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/codec/block.h"
#include "store/sqlite/state.h"
#include "store/totals/about.h"
#include "store/totals/build.h"

#define MINUTE_NS (STORE_TOTALS_MINUTE_MS * 1000000LL)
#define SLOTS (STORE_DAY_MINUTES / STORE_TOTALS_SLOT_MINUTES)
#define NONE UINT32_MAX

struct overview {
	const struct store_overview_query *query;
	struct store_overview *out;
	struct intern names; /* of services; by number as in services */
	struct intern types;
	struct buf services; /* struct store_overview_service */
	/* Of the day. */
	struct store_day *day;
	struct intern day_names;		    /* of its services */
	uint32_t *name_of;			    /* by service, to day_names; NONE: unknown */
	uint32_t *place_of;			    /* by service, to services; NONE: not yet */
	uint32_t type_of[STORE_TOTALS_MAX_TYPES];   /* to types; NONE: unknown */
	uint32_t wanted_as[STORE_TOTALS_MAX_TYPES]; /* to the query's; NONE: not wanted */
	uint32_t from, to;			    /* minutes of the window in it */
	struct store_codec codec;
	struct buf lists;
};

static void day_release(struct overview *o)
{
	intern_release(&o->day_names);
	free(o->name_of);
	o->name_of = o->place_of = NULL;
}

static void overview_release(struct overview *o)
{
	day_release(o);
	intern_release(&o->names);
	intern_release(&o->types);
	buf_release(&o->services);
	store_codec_release(&o->codec);
	buf_release(&o->lists);
}

/* --- what the day calls things */

static int load_services(struct overview *o, struct err *err)
{
	size_t bytes = ((size_t)STORE_DAY_MAX_STREAMS + 1) * 2 * sizeof(uint32_t);
	sqlite3_stmt *stmt = NULL;
	int r;

	o->name_of = malloc(bytes);
	if (!o->name_of)
		return err_oom(err);
	o->place_of = o->name_of + STORE_DAY_MAX_STREAMS + 1;
	memset(o->name_of, 0xff, bytes);
	r = store_day_query(o->day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);
	while (r == 0 && (r = store_day_next(o->day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		struct view name = store_day_blob(stmt, 1);

		r = 0;
		if (id <= 0 || id > STORE_DAY_MAX_STREAMS || name.len == 0 || name.len > 255)
			store_day_damaged(o->day, STORE_DAY_SERVICES, id);
		else
			r = intern_add(&o->day_names, name, &o->name_of[id]);
		if (r < 0) {
			store_day_done(stmt);
			return err_oom(err);
		}
	}
	return r;
}

static void know_type(struct overview *o, uint32_t id, uint32_t type)
{
	struct view name = intern_get(&o->types, type);

	o->type_of[id] = type;
	for (uint32_t i = 0; i < STORE_OVERVIEW_TYPES && o->query->types[i]; i++)
		if (view_eq(name, view_str(o->query->types[i])))
			o->wanted_as[id] = i;
}

/* Under a number below STORE_OVERVIEW_MAX_TYPES; else it is not known. */
static int add_type(struct overview *o, int64_t id, struct view name)
{
	uint32_t type = NONE;

	if (id < 0 || id >= STORE_TOTALS_MAX_TYPES || name.len == 0 || name.len > 127 ||
	    (o->types.len >= STORE_OVERVIEW_MAX_TYPES && !intern_find(&o->types, name, &type))) {
		store_day_damaged(o->day, STORE_DAY_TOTAL_TYPES, id);
		return 0;
	}
	if (type == NONE && intern_add(&o->types, name, &type) < 0)
		return -ENOMEM;
	know_type(o, (uint32_t)id, type);
	return 0;
}

static int load_types(struct overview *o, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(o->day, STORE_DAY_TOTAL_TYPES, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(o->day, stmt, err)) > 0) {
		r = add_type(o, sqlite3_column_int64(stmt, 0), store_day_blob(stmt, 1));
		if (r < 0) {
			store_day_done(stmt);
			return err_oom(err);
		}
	}
	return r;
}

/* NULL with *ret_r 0 if the day does not know it. */
static struct store_overview_service *find_service(struct overview *o, uint32_t id, int *ret_r)
{
	uint32_t *place = &o->place_of[id];

	*ret_r = 0;
	if (o->name_of[id] == NONE)
		return NULL;
	if (*place == NONE) {
		const struct store_overview_service fresh = {.first_ns = INT64_MAX};

		*ret_r = intern_add(&o->names, intern_get(&o->day_names, o->name_of[id]), place);
		if (*ret_r == 0 && *place == o->services.len / sizeof(fresh))
			*ret_r = buf_append(&o->services, &fresh, sizeof(fresh));
		if (*ret_r < 0)
			return NULL;
	}
	return (struct store_overview_service *)(void *)o->services.data + *place;
}

/* --- adding up */

static int add_cell(struct overview *o, struct store_overview_service *s, uint32_t wanted,
		    const struct store_totals_entry *e, const struct store_totals_times *times,
		    int64_t begin_ns)
{
	size_t step = (size_t)((begin_ns - o->query->from_ns) / o->query->step_ns);
	struct store_overview_cell *cell;

	if (!s->cells[wanted])
		s->cells[wanted] = arena_alloc(&o->out->memory, o->out->n_steps * sizeof(*cell));
	if (!s->cells[wanted])
		return -E2BIG;
	cell = &s->cells[wanted][step];
	cell->sum = store_block_add(cell->sum, e->sum);
	cell->times += times->n;
	cell->points += e->points;
	s->last_of_ns[wanted] =
		MAX(s->last_of_ns[wanted], begin_ns + (int64_t)times->last_ms * 1000000);
	return 0;
}

/* A process has a point of each type at most at each time. */
static void count_processes(struct store_overview_service *s, const struct store_totals_entry *e,
			    uint32_t times, int64_t begin_ns)
{
	uint32_t processes = (uint32_t)(((uint64_t)e->points + times - 1) / times);

	if (s->last_ns < begin_ns || processes > s->processes)
		s->processes = processes;
}

/* What one service had of one type since begin_ns, within one step. */
static int add_entry(struct overview *o, const struct store_totals_entry *e,
		     const struct store_totals_times *times, int64_t begin_ns)
{
	uint32_t type = o->type_of[e->type], wanted = o->wanted_as[e->type];
	struct store_overview_service *s;
	int r;

	s = find_service(o, e->service, &r);
	if (!s || type == NONE)
		return r < 0 ? r : -EBADMSG;
	s->types[type / 64] |= 1ULL << type % 64;
	count_processes(s, e, times->n, begin_ns);
	s->first_ns = MIN(s->first_ns, begin_ns + (int64_t)times->first_ms * 1000000);
	s->last_ns = MAX(s->last_ns, begin_ns + (int64_t)times->last_ms * 1000000);
	return wanted == NONE ? 0 : add_cell(o, s, wanted, e, times, begin_ns);
}

static int add_block(struct overview *o, struct view block, uint32_t minute, bool whole)
{
	int64_t begin_ns = o->day->number * STORE_DAY_NS + minute * MINUTE_NS;
	struct store_totals_block b;
	struct store_totals_entry e;
	bool unknown = false;
	int r = store_totals_open(&o->codec, block, &o->lists, &b);

	if (r == 0 && b.whole != whole)
		r = -EBADMSG;
	while (r == 0 && (r = store_totals_next_type(&b)) > 0)
		for (r = 0; r == 0 && (r = store_totals_next(&b, &e)) > 0;) {
			r = add_entry(o, &e, &b.lists[e.times], begin_ns);
			/* Its name is lost; the others are not. */
			unknown |= r == -EBADMSG;
			r = r == -EBADMSG ? 0 : r;
		}
	return r == 0 && unknown ? -EBADMSG : r;
}

/* 0, or an error that ends it all; damage is noted. */
static int go_on(struct overview *o, int64_t key, int r, struct err *err)
{
	if (r == -EBADMSG) {
		store_day_damaged(o->day, STORE_DAY_TOTALS, key);
		return 0;
	}
	if (r == -E2BIG)
		return err_set(err, r,
			       "the totals do not fit into memory; use a shorter window or a "
			       "larger step");
	return r < 0 ? err_oom(err) : 0;
}

static bool is_within_step(const struct overview *o, uint32_t slot)
{
	int64_t first = o->day->number * STORE_DAY_NS +
			(int64_t)slot * STORE_TOTALS_SLOT_MINUTES * MINUTE_NS - o->query->from_ns;
	int64_t last = first + (STORE_TOTALS_SLOT_MINUTES - 1) * MINUTE_NS;

	return slot * STORE_TOTALS_SLOT_MINUTES >= o->from &&
	       (slot + 1) * STORE_TOTALS_SLOT_MINUTES <= o->to &&
	       first / o->query->step_ns == last / o->query->step_ns;
}

/* Sets done for each slot that was added. */
static int add_slots(struct overview *o, bool done[SLOTS], struct err *err)
{
	const int64_t range[] = {store_day_slot_key(o->from / STORE_TOTALS_SLOT_MINUTES),
				 store_day_slot_key((o->to + STORE_TOTALS_SLOT_MINUTES - 1) /
						    STORE_TOTALS_SLOT_MINUTES)};
	sqlite3_stmt *stmt = NULL;
	int r;

	if (o->query->step_ns < STORE_TOTALS_SLOT_MINUTES * MINUTE_NS)
		return 0;
	r = store_day_query(o->day, STORE_DAY_TOTALS, range, 2, &stmt, err);
	while (r == 0 && (r = store_day_next(o->day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		uint32_t slot = (uint32_t)(key - store_day_slot_key(0));

		r = 0;
		if (!is_within_step(o, slot))
			continue;
		/* A damaged one has its minutes, unless it was begun. */
		if (!store_codec_is_whole(store_day_blob(stmt, 1))) {
			store_day_damaged(o->day, STORE_DAY_TOTALS, key);
			continue;
		}
		done[slot] = true;
		r = go_on(o, key,
			  add_block(o, store_day_blob(stmt, 1), slot * STORE_TOTALS_SLOT_MINUTES,
				    false),
			  err);
		if (r < 0)
			store_day_done(stmt);
	}
	return r;
}

static int add_minutes(struct overview *o, uint32_t from, uint32_t to, struct err *err)
{
	const int64_t range[] = {from, to};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(o->day, STORE_DAY_TOTALS, range, 2, &stmt, err);

	while (r == 0 && (r = store_day_next(o->day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);

		r = go_on(o, key, add_block(o, store_day_blob(stmt, 1), (uint32_t)key, true), err);
		if (r < 0)
			store_day_done(stmt);
	}
	return r;
}

static int add_totals(struct overview *o, struct err *err)
{
	bool done[SLOTS] = {false};
	int r = load_types(o, err);

	if (r == 0)
		r = add_slots(o, done, err);
	for (uint32_t from = o->from, to; r == 0 && from < o->to; from = to + 1) {
		for (to = from; to < o->to && !done[to / STORE_TOTALS_SLOT_MINUTES]; to++)
			;
		if (to > from)
			r = add_minutes(o, from, to, err);
	}
	return r;
}

/* --- days without totals */

static int add_built_minute(struct overview *o, const struct store_totals_minute *m, int64_t minute)
{
	const struct store_totals_entry *e = (const void *)m->entries.data;
	int64_t begin_ns = o->day->number * STORE_DAY_NS + minute * MINUTE_NS;
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->entries.len / sizeof(*e); i++) {
		struct view list = intern_get(&m->lists, e[i].times);
		struct store_totals_times times = {.n = (uint32_t)(list.len / sizeof(uint16_t))};
		uint16_t first, last;

		memcpy(&first, list.data, sizeof(first));
		memcpy(&last, list.data + list.len - sizeof(last), sizeof(last));
		times.first_ms = first;
		times.last_ms = last;
		r = add_entry(o, &e[i], &times, begin_ns);
	}
	return r;
}

static int add_hour(struct overview *o, int64_t hour, struct err *err)
{
	struct store_totals_hour *h = calloc(1, sizeof(*h));
	int64_t from = MAX(hour * 60, o->from), to = MIN((hour + 1) * 60, o->to);
	int r = h ? store_totals_build(h, o->day, from * STORE_TOTALS_MINUTE_MS,
				       to * STORE_TOTALS_MINUTE_MS, err)
		  : err_oom(err);

	memset(o->type_of, 0xff, sizeof(o->type_of));
	memset(o->wanted_as, 0xff, sizeof(o->wanted_as));
	for (uint32_t i = 0; r == 0 && i < MIN(h->types.len, STORE_TOTALS_MAX_TYPES); i++) {
		struct view name = intern_get(&h->types, i);

		r = add_type(o, i, view_of(name.data + 1, name.len - 1));
	}
	for (int64_t i = from; r == 0 && i < to; i++)
		r = go_on(o, i, add_built_minute(o, &h->minutes[i % 60], i), err);
	if (h)
		store_totals_hour_release(h);
	free(h);
	return r;
}

/* Nothing says how long processes lived, so that none is short-lived. */
static int add_points(struct overview *o, struct err *err)
{
	int r = 0;

	for (int64_t hour = o->from / 60; r == 0 && hour * 60 < o->to; hour++)
		r = add_hour(o, hour, err);
	for (uint32_t id = 0; r == 0 && id <= STORE_DAY_MAX_STREAMS; id++)
		if (o->place_of[id] != NONE)
			((struct store_overview_service *)(void *)o->services.data)[o->place_of[id]]
				.lived = true;
	return r;
}

/* --- what services are */

static const char *keep_text(struct overview *o, const char *text, const char *before)
{
	if (!*text || (before && strcmp(text, before) == 0))
		return before;
	return arena_dup(&o->out->memory, text, strlen(text) + 1);
}

static int load_abouts(struct overview *o, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(o->day, STORE_DAY_ABOUTS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(o->day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		struct store_overview_service *s;
		struct store_about a;

		r = 0;
		if (id < 0 || id > STORE_DAY_MAX_STREAMS || o->place_of[id] == NONE)
			continue;
		s = (struct store_overview_service *)(void *)o->services.data + o->place_of[id];
		if (store_about_decode(store_day_blob(stmt, 1), &a) < 0) {
			store_day_damaged(o->day, STORE_DAY_ABOUTS, id);
			s->lived = true;
			continue;
		}
		s->lived |= a.lived;
		s->runtime = keep_text(o, a.runtime, s->runtime);
		s->parent = keep_text(o, a.parent, s->parent);
	}
	return r;
}

static int overview_day(void *ctx, struct store_day *day, struct err *err)
{
	struct overview *o = ctx;
	int64_t from_ms, to_ms;
	int r;

	store_sqlite_day_window(day, o->query->from_ns, o->query->to_ns, &from_ms, &to_ms);
	o->day = day;
	o->from = (uint32_t)(from_ms / STORE_TOTALS_MINUTE_MS);
	o->to = (uint32_t)(to_ms / STORE_TOTALS_MINUTE_MS);
	memset(o->type_of, 0xff, sizeof(o->type_of));
	memset(o->wanted_as, 0xff, sizeof(o->wanted_as));
	r = load_services(o, err);
	if (r == 0)
		r = store_day_has_totals(day) ? add_totals(o, err) : add_points(o, err);
	if (r == 0 && store_day_has_totals(day))
		r = load_abouts(o, err);
	day_release(o);
	return r;
}

/* --- the answer */

static int finish(struct overview *o, struct store_overview *out, struct err *err)
{
	struct store_overview_service *s;

	out->len = o->names.len;
	out->n_types = o->types.len;
	out->services = arena_dup(&out->memory, o->services.data, o->services.len);
	out->types = arena_alloc(&out->memory, (out->n_types + 1) * sizeof(*out->types));
	if ((out->len > 0 && !out->services) || !out->types)
		return err_oom(err);
	for (size_t i = 0; i < out->n_types; i++) {
		struct view name = intern_get(&o->types, (uint32_t)i);

		out->types[i] = arena_dup(&out->memory, name.data, name.len + 1);
		if (!out->types[i])
			return err_oom(err);
	}
	for (size_t i = 0; i < out->len; i++) {
		struct view name = intern_get(&o->names, (uint32_t)i);

		s = &out->services[i];
		s->name = arena_dup(&out->memory, name.data, name.len + 1);
		s->runtime = s->runtime ? s->runtime : "";
		s->parent = s->parent ? s->parent : "";
		if (!s->name)
			return err_oom(err);
	}
	return 0;
}

int store_sqlite_overview(struct store *store, const struct store_overview_query *query,
			  struct store_overview *ret_overview, struct err *err)
{
	struct store_overview out = {
		.n_steps = (size_t)((query->to_ns - query->from_ns + query->step_ns - 1) /
				    query->step_ns)};
	_cleanup_(overview_release) struct overview o = {.query = query, .out = &out};
	const struct store_sqlite_span span = {query->from_ns, query->to_ns, &out.damaged};
	int r = store_sqlite_each_day(store_sqlite(store), &span, overview_day, &o, err);

	if (r == 0)
		r = finish(&o, &out, err);
	if (r < 0)
		store_overview_release(&out);
	else
		*ret_overview = out;
	return r;
}
