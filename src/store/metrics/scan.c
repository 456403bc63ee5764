/* src/store/metrics/scan.c: see scan.h. */
#include "store/metrics/scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "store/metrics/block.h"

_Static_assert(STORE_METRICS_COLUMN_BYTES * 8 > STORE_METRICS_MAX_COLUMN, "a bit for each column");
_Static_assert(STORE_METRICS_MAX_LABELSET == STORE_DAY_MAX_LABELSETS, "all label sets of a day");

/* A list of times in one of the window's hours, and its part in the window. */
struct times {
	int64_t begin_ms;
	size_t at; /* of the first one, in the memory of all */
	size_t n;
	size_t first;
	size_t last;
};

struct scanning {
	struct store_metrics_scan *scan;
	struct store_day *day;
	struct err *err;
	struct store_codec codec;
	struct buf values;
	struct buf times; /* struct times */
	struct buf ms;	  /* uint32_t: of all of them */
	struct map lists; /* hour << 28 | list, to its place in times */
	struct store_metrics_hour hour;
	struct store_metrics_times decoded;
};

static void scanning_free(struct scanning *s)
{
	if (!s)
		return;
	store_codec_release(&s->codec);
	buf_release(&s->values);
	buf_release(&s->times);
	buf_release(&s->ms);
	map_release(&s->lists);
	free(s);
}
DEFINE_CLEANUP(struct scanning, scanning_free)

static bool has_bit(const uint8_t *bits, uint32_t i)
{
	return !bits || (bits[i / 8] >> i % 8 & 1);
}

/* Damaged blocks are counted and skipped. */
static int go_on(struct scanning *s, enum store_day_sql table, int64_t key, int r)
{
	if (r == -EBADMSG) {
		store_day_damaged(s->day, table, key);
		return 0;
	}
	return r == -ENOMEM ? err_oom(s->err) : r;
}

/* Calls fn for each row in a range of keys, until it returns nonzero. */
static int each_row(struct scanning *s, enum store_day_sql table, const int64_t range[2],
		    int (*fn)(struct scanning *s, int64_t key, struct view block))
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(s->day, table, range, 2, &stmt, s->err);

	while (r == 0 && (r = store_day_next(s->day, stmt, s->err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);

		r = go_on(s, table, key, fn(s, key, store_day_blob(stmt, 1)));
		if (r != 0)
			store_day_done(stmt);
	}
	return r;
}

/* --- times */

static int64_t list_begin_ms(int64_t key)
{
	return (key >> 28 & 31) * STORE_METRICS_HOUR_MS;
}

/* Which of the decoded times are in the window. */
static void cut(const struct scanning *s, struct times *t)
{
	const uint32_t *ms = s->decoded.times_ms;

	t->first = 0;
	t->last = t->n;
	while (t->first < t->last && t->begin_ms + ms[t->first] < s->scan->from_ms)
		t->first++;
	while (t->last > t->first && t->begin_ms + ms[t->last - 1] >= s->scan->to_ms)
		t->last--;
}

static int keep_list(struct scanning *s, int64_t key, struct view block)
{
	struct times t = {.begin_ms = list_begin_ms(key), .at = s->ms.len / sizeof(uint32_t)};
	int r = store_metrics_decode_times(block, &s->decoded);

	if (r < 0)
		return r;
	t.n = s->decoded.n_times;
	cut(s, &t);
	r = buf_append(&s->ms, s->decoded.times_ms, t.n * sizeof(uint32_t));
	if (r == 0)
		r = map_put(&s->lists, (uint64_t)key & ((1ULL << 33) - 1),
			    s->times.len / sizeof(t));
	return r < 0 ? -ENOMEM : buf_append(&s->times, &t, sizeof(t));
}

static int span_list(struct scanning *s, int64_t key, struct view block)
{
	struct store_metrics_batch b = {.begin_ms = list_begin_ms(key)};
	struct times t = {.begin_ms = b.begin_ms};
	int r = store_metrics_decode_times(block, &s->decoded);

	if (r < 0)
		return r;
	t.n = s->decoded.n_times;
	cut(s, &t);
	b.times_ms = s->decoded.times_ms + t.first;
	b.n = t.last - t.first;
	while (b.n > 0 && r == 0 && (r = store_metrics_next_labelset(&s->decoded, &b.labelset)) > 0)
		r = has_bit(s->scan->labelsets, b.labelset) ? s->scan->fn(s->scan->ctx, &b) : 0;
	return r;
}

static int each_list(struct scanning *s,
		     int (*fn)(struct scanning *s, int64_t key, struct view block))
{
	unsigned int first = (unsigned int)(s->scan->from_ms / STORE_METRICS_HOUR_MS);
	unsigned int end = (unsigned int)((s->scan->to_ms - 1) / STORE_METRICS_HOUR_MS + 1);
	const int64_t range[] = {store_day_times_key(s->scan->service, first, 0),
				 store_day_times_key(s->scan->service, end, 0)};

	return each_row(s, STORE_DAY_TIMES, range, fn);
}

/* --- past hours */

/* The values of the series, or only their presence. */
static int read_values(struct scanning *s)
{
	struct store_metrics_hour *h = &s->hour;
	uint32_t width = s->scan->presence ? 1 : h->width;
	double *values;
	int r;

	buf_clear(&s->values);
	r = buf_reserve(&s->values, ((size_t)width * h->n_times + 1) * sizeof(*values));
	if (r < 0)
		return r;
	values = (void *)s->values.data;
	if (s->scan->presence) {
		for (size_t i = 0; i < h->n_times; i++)
			values[i] = h->present[i] ? 0 : (double)NAN;
		return 0;
	}
	for (uint32_t i = 0; r == 0 && i < width; i++)
		r = store_metrics_hour_values(h, i, values + i * h->n_times);
	return r;
}

static int scan_hour(struct scanning *s, int64_t key, struct view block)
{
	struct store_metrics_batch b = {
		.labelset = key >> 6 & STORE_DAY_MAX_LABELSETS,
		.column = key >> 31 & STORE_METRICS_MAX_COLUMN,
	};
	uint64_t hour = (uint64_t)key >> 26 & 31, place;
	const struct times *t;
	int r;

	if (!has_bit(s->scan->labelsets, b.labelset))
		return 0;
	r = store_metrics_open_hour(block, &s->hour);
	if (r < 0)
		return r;
	if (s->hour.list >= STORE_DAY_MAX_LISTS ||
	    !map_get(&s->lists, hour << 28 | s->hour.list, &place))
		return -EBADMSG;
	t = (const struct times *)(void *)s->times.data + place;
	if (t->first == t->last)
		return 0;
	r = store_metrics_read_hour(&s->codec, &s->hour, t->n);
	if (r == 0)
		r = read_values(s);
	if (r < 0)
		return r;
	b.width = s->hour.width;
	b.times = place + 1;
	b.times_ms = (const uint32_t *)(void *)s->ms.data + t->at + t->first;
	b.begin_ms = t->begin_ms;
	b.n = t->last - t->first;
	b.values = (const double *)(void *)s->values.data + t->first;
	b.stride = t->n;
	return s->scan->fn(s->scan->ctx, &b);
}

/* All hours of the window for one column; or for all columns, including hours outside it. */
static int scan_column(struct scanning *s, uint32_t column)
{
	unsigned int first = (unsigned int)(s->scan->from_ms / STORE_METRICS_HOUR_MS);
	unsigned int end = (unsigned int)((s->scan->to_ms - 1) / STORE_METRICS_HOUR_MS + 1);
	const int64_t range[] = {store_day_hour_key(s->scan->service, column, first, 0),
				 store_day_hour_key(s->scan->service, column, end, 0)};

	return each_row(s, STORE_DAY_HOURS, range, scan_hour);
}

static int scan_hours(struct scanning *s)
{
	int r = each_list(s, keep_list);

	/* Without times there are no hours. */
	for (uint32_t i = 0; r == 0 && s->times.len > 0 && i < STORE_METRICS_COLUMN_BYTES * 8;
	     i++) {
		if (s->scan->columns[i / 8] == 0)
			i |= 7;
		else if (has_bit(s->scan->columns, i))
			r = scan_column(s, i);
	}
	return r;
}

/* --- readings */

static int scan_reading(struct scanning *s, int64_t key, struct view block)
{
	static const uint32_t at = 0;
	struct store_metrics_scan *scan = s->scan;
	struct store_metrics_batch b = {
		.labelset = store_day_key_labelset(key),
		.begin_ms = store_day_key_ms(key),
		.times_ms = &at,
		.n = 1,
		.stride = 1,
	};
	struct store_metrics_reading reading;
	struct store_metrics_cell cell;
	int r;

	if (!has_bit(scan->labelsets, b.labelset))
		return 0;
	r = store_metrics_open_reading(block, &reading);
	if (r == 0 && !scan->columns)
		return scan->fn(scan->ctx, &b);
	while (r == 0 && (r = store_metrics_next_cell(&reading, &cell)) > 0) {
		r = 0;
		if (!has_bit(scan->columns, cell.column))
			continue;
		b.column = cell.column;
		b.width = cell.width;
		b.values = cell.values;
		r = scan->fn(scan->ctx, &b);
	}
	return r;
}

int store_metrics_scan(struct store_metrics_scan *scan, struct store_day *day, struct err *err)
{
	_cleanup_(scanning_freep) struct scanning *s = NULL;
	const int64_t readings[] = {store_day_key(scan->service, scan->from_ms, 0),
				    store_day_key(scan->service, scan->to_ms, 0)};
	int r;

	if (!store_day_has_metrics(day) || scan->from_ms >= scan->to_ms)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	s->scan = scan;
	s->day = day;
	s->err = err;
	r = scan->columns ? scan_hours(s) : each_list(s, span_list);
	return r != 0 ? r : each_row(s, STORE_DAY_READINGS, readings, scan_reading);
}
