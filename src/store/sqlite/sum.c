/*
 * src/store/sqlite/sum.c: the sum over a window. Whole days come from roll-ups, the rest from
 * hourly packs and unpacked collections; all are added into one array by stack id.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/metrics/stream.h"
#include "store/sqlite/build.h"
#include "store/sqlite/dict.h"
#include "store/sqlite/hold.h"
#include "store/sqlite/state.h"

struct summing {
	const struct store_window *window;
	struct store_codec codec;
	struct store_build build;
	struct store_block_sums sums; /* of one day */
	struct store_sum total;
	double metric; /* of a metric with this stream name */
	/* Of the day being read. */
	struct store_sqlite_stream stream;
	uint8_t *bits;
	int64_t from_ms;
	int64_t to_ms;
	uint64_t collections;
	struct store_hold hold;
};

/* After a block that could not be added: 0 if the others can. */
static int go_on(const struct summing *s, struct store_day *day, enum store_day_sql table,
		 int64_t key, int r, struct err *err)
{
	if (r == -EBADMSG && !s->sums.torn) {
		store_day_damaged(day, table, key);
		return 0;
	}
	return err_set(err, r,
		       r == -EBADMSG ? "%s: a malformed block" : "%s: not enough memory to read it",
		       day->path);
}

static int sum_pack(struct summing *s, int64_t key, struct view block)
{
	int64_t hour = key >> 28 & 31;
	int64_t from = s->from_ms - hour * STORE_BLOCK_HOUR_MS;
	int64_t to = s->to_ms - hour * STORE_BLOCK_HOUR_MS;

	if (!store_sqlite_passes(s->bits, key >> 8 & STORE_DAY_MAX_LABELSETS))
		return 0;
	return store_block_sum_pack(&s->codec, block, (uint32_t)MAX(from, 0),
				    (uint32_t)MIN(to, STORE_BLOCK_HOUR_MS), &s->sums);
}

/* Adds what a table has in a range of keys. */
static int sum_range(struct summing *s, struct store_day *day, enum store_day_sql table,
		     int64_t from, int64_t to, struct err *err)
{
	const int64_t range[] = {from, to};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, table, range, 2, &stmt, err);

	if (r < 0)
		return r;
	while ((r = store_day_next(day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);

		if (table == STORE_DAY_PACKS)
			r = sum_pack(s, key, store_day_blob(stmt, 1));
		else if (store_sqlite_passes(s->bits, store_day_key_labelset(key)))
			r = store_block_sum_sums(&s->codec, store_day_blob(stmt, 1), &s->sums);
		if (r < 0)
			r = go_on(s, day, table, key, r, err);
		if (r < 0) {
			store_day_done(stmt);
			return r;
		}
	}
	return r;
}

/* The hours that the window touches. */
static void hours_of(const struct summing *s, unsigned int *ret_first, unsigned int *ret_end)
{
	*ret_first = (unsigned int)(s->from_ms / STORE_BLOCK_HOUR_MS);
	*ret_end = (unsigned int)((s->to_ms - 1) / STORE_BLOCK_HOUR_MS + 1);
}

/* Also how many of them each process missed, because it is read less often. */
static int count_collections(struct summing *s, struct store_day *day, struct err *err)
{
	bool stands = s->stream.snapshot && s->window->stands;
	int64_t margin = stands ? STORE_HOLD_MARGIN_MS : 0;
	const int64_t range[] = {
		store_day_key(s->stream.id, MAX(s->from_ms - margin, 0), 0),
		store_day_key(s->stream.id, MIN(s->to_ms + margin, STORE_DAY_MS), 0)};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_POINTS, range, 2, &stmt, err);

	s->hold.from_ms = s->from_ms;
	s->hold.to_ms = s->to_ms;
	if (r < 0)
		return r;
	while ((r = store_day_next(day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0), labelset = store_day_key_labelset(key);

		r = store_hold_add(&s->hold, (uint32_t)store_day_key_ms(key), (uint32_t)labelset,
				   stands && store_sqlite_passes(s->bits, labelset), 0);
		if (r < 0) {
			store_day_done(stmt);
			return err_oom(err);
		}
	}
	if (r == 0 && store_hold_finish(&s->hold, NULL, NULL) < 0)
		r = err_oom(err);
	s->collections += store_hold_times(&s->hold);
	return r;
}

/* 1 if the whole day is wanted and rolled up, with how many collections. */
static int is_rolled(struct summing *s, struct store_day *day, uint64_t *ret_collections,
		     struct err *err)
{
	const int64_t id = s->stream.id;
	int64_t collections;
	int r;

	if (s->from_ms > 0 || s->to_ms < STORE_DAY_MS)
		return 0;
	r = store_day_value(day, STORE_DAY_ROLLED, &id, 1, &collections, err);
	if (r > 0)
		*ret_collections = (uint64_t)collections;
	return r;
}

/* What the wanted label sets have, as it was read. */
static int sum_readings(struct summing *s, struct store_day *day, bool rolled, struct err *err)
{
	uint32_t id = s->stream.id;
	unsigned int first, end;
	int r;

	if (rolled)
		return sum_range(s, day, STORE_DAY_ROLLUPS, store_day_rollup_key(id, 0),
				 store_day_rollup_key(id + 1, 0), err);
	hours_of(s, &first, &end);
	r = sum_range(s, day, STORE_DAY_PACKS, store_day_pack_key(id, first, 0, 0),
		      store_day_pack_key(id, end, 0, 0), err);
	return r < 0 ? r
		     : sum_range(s, day, STORE_DAY_PROFILES, store_day_key(id, s->from_ms, 0),
				 store_day_key(id, s->to_ms, 0), err);
}

/* The first collection of the window that is not packed; its end if all are. */
static int first_unpacked(const struct summing *s, struct store_day *day, int64_t *ret_ms,
			  struct err *err)
{
	const int64_t range[] = {store_day_key(s->stream.id, s->from_ms, 0),
				 store_day_key(s->stream.id, s->to_ms, 0)};
	int64_t key;
	int r = store_day_value(day, STORE_DAY_PROFILE_KEYS, range, 2, &key, err);

	*ret_ms = r > 0 ? store_day_key_ms(key) : s->to_ms;
	return MIN(r, 0);
}

/* The same of one label set, found by its keys: there may be many, and each is read so. */
static int sum_readings_of(struct summing *s, struct store_day *day, bool rolled, uint32_t labelset,
			   int64_t unpacked_ms, struct err *err)
{
	const uint32_t *times = (const void *)s->hold.times.data;
	int64_t key = store_day_rollup_key(s->stream.id, labelset);
	unsigned int first, end;
	int r = 0;

	if (rolled)
		return sum_range(s, day, STORE_DAY_ROLLUPS, key, key + 1, err);
	hours_of(s, &first, &end);
	for (unsigned int hour = first; r == 0 && hour < end; hour++) {
		key = store_day_pack_key(s->stream.id, hour, labelset, 0);
		r = sum_range(s, day, STORE_DAY_PACKS, key, key + STORE_DAY_MAX_PARTS, err);
	}
	for (size_t i = 0; r == 0 && i < s->hold.times.len / sizeof(*times); i++) {
		if (times[i] < unpacked_ms || times[i] >= s->to_ms)
			continue;
		key = store_day_key(s->stream.id, times[i], labelset);
		r = sum_range(s, day, STORE_DAY_PROFILES, key, key + 1, err);
	}
	return r;
}

/* What one label set would have had in the readings it missed; it has room in sums already. */
static void sums_add_held(struct store_block_sums *sums, const struct store_block_sums *one,
			  const struct store_hold_set *set)
{
	for (uint32_t i = 0; i < MIN(one->n_stacks, sums->n_stacks); i++) {
		__int128 more;

		if (one->values[i] == 0)
			continue;
		more = (__int128)one->values[i] * set->held / set->readings;
		more = MIN(MAX(more, (__int128)-INT64_MAX), (__int128)INT64_MAX);
		sums->values[i] = store_block_add(sums->values[i], (int64_t)more);
	}
}

/* A snapshot that stands at several times counts at each of them. one: room for its sums. */
static int sum_held_of(struct summing *s, struct store_day *day, bool rolled,
		       const struct store_hold_set *set, int64_t unpacked_ms,
		       struct store_block_sums *one, struct err *err)
{
	struct store_block_sums all = s->sums;
	/* What is damaged was met before, when all were read. */
	struct store_damage damage = day->damage;
	unsigned int n_skipped = day->n_skipped;
	int r;

	store_block_sums_clear(one);
	s->sums = *one;
	r = sum_readings_of(s, day, rolled, set->labelset, unpacked_ms, err);
	*one = s->sums;
	s->sums = all;
	day->damage = damage;
	day->n_skipped = n_skipped;
	if (r == 0)
		sums_add_held(&s->sums, one, set);
	return r;
}

static int sum_held(struct summing *s, struct store_day *day, bool rolled, struct err *err)
{
	const struct store_hold_set *sets = (const void *)s->hold.sets.data;
	struct store_block_sums one = {0};
	int64_t unpacked_ms = s->to_ms;
	int r = 0;

	if (!rolled && s->hold.sets.len > 0)
		r = first_unpacked(s, day, &unpacked_ms, err);
	for (size_t i = 0; r == 0 && i < s->hold.sets.len / sizeof(*sets); i++) {
		if (!sets[i].held || !sets[i].readings)
			continue;
		if (!one.values)
			one.values = malloc((STORE_BLOCK_MAX_STACK + 1) * sizeof(*one.values));
		r = one.values ? sum_held_of(s, day, rolled, &sets[i], unpacked_ms, &one, err)
			       : err_oom(err);
	}
	free(one.values);
	return r;
}

/* By the roll-ups, which hold so many collections, or by the hours. */
static int sum_stream_by(struct summing *s, struct store_day *day, bool rolled,
			 uint64_t collections, struct err *err)
{
	int r = 0;

	if (rolled && !(s->stream.snapshot && s->window->stands))
		s->collections += collections;
	else
		r = count_collections(s, day, err);
	if (r == 0)
		r = sum_readings(s, day, rolled, err);
	return r < 0 ? r : sum_held(s, day, rolled, err);
}

static int sum_stream(struct summing *s, struct store_day *day, struct err *err)
{
	uint64_t damaged = day->damage.found, collections = 0;
	int r = is_rolled(s, day, &collections, err);

	if (r == 0)
		return sum_stream_by(s, day, false, 0, err);
	if (r > 0)
		r = sum_stream_by(s, day, true, collections, err);
	if (r >= 0 && day->damage.found == damaged)
		return r;
	if (r < 0 && r != -EBADMSG)
		return r;
	if (r < 0)
		store_day_damaged(day, STORE_DAY_ROLLED, s->stream.id);
	/* The hours have it all once more. */
	store_block_sums_clear(&s->sums);
	store_hold_release(&s->hold);
	s->hold = (struct store_hold){0};
	s->collections = 0;
	return sum_stream_by(s, day, false, 0, err);
}

static int build_stream(struct summing *s, struct store_day *day, struct err *err)
{
	int r = sum_stream(s, day, err);

	if (r < 0)
		return r;
	r = store_build_add_day(&s->build, &s->codec, day, s->stream.service, &s->sums, err);
	if (r < 0)
		return r;
	s->total.snapshot = s->stream.snapshot;
	s->total.collections += s->collections;
	s->total.samples += s->sums.samples;
	if (s->sums.n_stacks > STORE_DICT_OTHER)
		s->total.other = store_block_add(s->total.other, s->sums.values[STORE_DICT_OTHER]);
	return 0;
}

static int sum_profiles(struct summing *s, struct store_day *day, struct err *err)
{
	int r = store_sqlite_find_stream(day, s->window->service, s->window->type, &s->stream, err);

	if (r <= 0)
		return r;
	store_sqlite_day_window(day, s->window->from_ns, s->window->to_ns, &s->from_ms, &s->to_ms);
	if (s->from_ms >= s->to_ms)
		return 0;
	store_block_sums_clear(&s->sums);
	s->collections = 0;
	r = store_sqlite_filter(day, s->stream.service, s->window, &s->bits, err);
	if (r == 0)
		r = build_stream(s, day, err);
	free(TAKE_PTR(s->bits));
	store_hold_release(&s->hold);
	s->hold = (struct store_hold){0};
	return r;
}

static void sum_value(void *ctx, int64_t ms, double value)
{
	struct summing *s = ctx;

	(void)ms;
	s->metric += value;
	s->total.samples++;
}

static int sum_day(void *ctx, struct store_day *day, struct err *err)
{
	struct summing *s = ctx;
	struct store_metrics_stream metrics = {.fn = sum_value, .ctx = s};
	int r = sum_profiles(s, day, err);

	if (r == 0)
		r = store_metrics_read_stream(&metrics, day, s->window, err);
	if (r > 0) {
		s->total.snapshot = metrics.snapshot;
		s->total.collections += metrics.times.len / sizeof(uint32_t);
	}
	buf_release(&metrics.times);
	return MIN(r, 0);
}

/* A metric has no stack: its family serves as one, "[go runtime]". */
static int add_metric(const struct summing *s, struct profile *p)
{
	const char *type = s->window->type;
	int family = (int)strcspn(type, ":");
	struct profile_function f = {0};
	struct profile_line line = {0};
	uint32_t location = 0, stack = 0;
	char name[256];
	int64_t value;
	int r;

	if (s->metric == 0)
		return 0;
	value = s->metric >= (double)INT64_MAX ? INT64_MAX : (int64_t)llround(s->metric);
	(void)snprintf(name, sizeof(name), "[%.*s]", family, type);
	for (char *c = name; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	r = profile_add_string(p, view_str(name), &f.name);
	f.system_name = f.name;
	if (r == 0)
		r = profile_add_function(p, &f, &line.function);
	if (r == 0)
		r = profile_add_location(p, 0, PROFILE_NO_MAPPING, &line, 1, &location);
	if (r == 0)
		r = profile_add_stack(p, &location, 1, &stack);
	return r < 0 ? r : profile_add_sample(p, stack, &value, NULL, 0);
}

/* "go_heap:inuse_space:bytes" has the type inuse_space, in bytes. */
static int add_type(struct profile *p, const char *type)
{
	const char *first = strchr(type, ':');
	const char *last = strrchr(type, ':');
	struct profile_type ids = {0};
	struct view name, unit;
	int r;

	name = first && last > first ? view_of(first + 1, (size_t)(last - first - 1))
				     : view_str(type);
	unit = first && last > first ? view_str(last + 1) : view_str("");
	r = profile_add_string(p, name, &ids.type);
	if (r == 0)
		r = profile_add_string(p, unit, &ids.unit);
	return r < 0 ? r : profile_add_type_ids(p, ids);
}

static void summing_release(struct summing *s)
{
	store_codec_release(&s->codec);
	store_build_release(&s->build);
	free(s->sums.values);
}

int store_sqlite_sum(struct store *store, const struct store_window *window,
		     struct store_sum *ret_sum, struct err *err)
{
	const struct store_sqlite_span span = {window->from_ns, window->to_ns, window->damaged};
	_cleanup_(summing_release) struct summing s = {.window = window};
	int64_t length;
	int r;

	s.sums.values = malloc((STORE_BLOCK_MAX_STACK + 1) * sizeof(*s.sums.values));
	if (!s.sums.values || store_build_init(&s.build) < 0 ||
	    add_type(s.build.profile, window->type) < 0)
		return err_oom(err);
	profile_header(s.build.profile)->time_ns = window->from_ns;
	if (!__builtin_sub_overflow(window->to_ns, window->from_ns, &length))
		profile_header(s.build.profile)->duration_ns = length;
	r = store_sqlite_each_day(store_sqlite(store), &span, sum_day, &s, err);
	if (r == 0)
		r = store_build_finish(&s.build, &s.total.profile, err);
	if (r == 0 && add_metric(&s, s.total.profile) < 0) {
		profile_free(s.total.profile);
		r = err_oom(err);
	}
	if (r == 0)
		*ret_sum = s.total;
	return r;
}
