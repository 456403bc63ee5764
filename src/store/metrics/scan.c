/* src/store/metrics/scan.c: see scan.h. */
#include "store/metrics/scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "store/metrics/block.h"

_Static_assert(METRICS_COLUMN_BYTES * 8 > METRICS_MAX_COLUMN, "a bit for each column");

struct scanning {
	struct metrics_scan *scan;
	struct codec codec;
	struct buf values;
	bool times_only;
	struct metrics_hour_reader hour;
};

static void scanning_free(struct scanning *s)
{
	if (!s)
		return;
	codec_release(&s->codec);
	buf_release(&s->values);
	free(s);
}
DEFINE_CLEANUP(struct scanning, scanning_free)

static bool has_bit(const uint8_t *bits, uint32_t i)
{
	return !bits || (bits[i / 8] >> i % 8 & 1);
}

/* Which of the block's times are in the window. */
static void cut_times(const struct scanning *s, struct metrics_batch *b, size_t *ret_first)
{
	const struct metrics_hour_reader *h = &s->hour;
	size_t first = 0, last = h->n_times;

	while (first < last && b->begin_ms + h->times_ms[first] < s->scan->from_ms)
		first++;
	while (last > first && b->begin_ms + h->times_ms[last - 1] >= s->scan->to_ms)
		last--;
	b->times_ms = h->times_ms + first;
	b->n = last - first;
	*ret_first = first;
}

/* The values of the column that was just met, or whether there are any. */
static int read_values(struct scanning *s)
{
	struct metrics_hour_reader *h = &s->hour;
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
		r = metrics_column_values(h, i, values + i * h->n_times);
	return r;
}

static int scan_columns(struct scanning *s, struct metrics_batch *b, struct cursor *rest,
			size_t first)
{
	struct metrics_scan *scan = s->scan;
	struct metrics_hour_reader *h = &s->hour;
	int r = metrics_hour_columns(&s->codec, rest, h);

	b->stride = h->n_times;
	while (r == 0 && (r = metrics_next_column(h)) > 0) {
		r = 0;
		if (!has_bit(scan->columns, h->column))
			continue;
		r = read_values(s);
		if (r < 0)
			break;
		b->column = h->column;
		b->width = h->width;
		b->values = (const double *)(const void *)s->values.data + first;
		r = scan->fn(scan->ctx, b);
	}
	return r;
}

static int scan_hour(struct scanning *s, int64_t key, struct view block)
{
	struct metrics_scan *scan = s->scan;
	struct metrics_batch b = {
		.labelset = key >> 8 & DAY_MAX_LABELSETS,
		.block = scan->blocks,
		.begin_ms = (key >> 28 & 31) * METRICS_HOUR_MS,
	};
	struct cursor rest;
	size_t first;
	int r;

	if (!has_bit(scan->labelsets, b.labelset))
		return 0;
	r = metrics_open_hour(&s->codec, block, &s->hour, &rest);
	if (r < 0)
		return r;
	cut_times(s, &b, &first);
	if (b.n == 0)
		return 0;
	return s->times_only ? scan->fn(scan->ctx, &b) : scan_columns(s, &b, &rest, first);
}

static int scan_reading(struct scanning *s, int64_t key, struct view block)
{
	static const uint32_t at = 0;
	struct metrics_scan *scan = s->scan;
	struct metrics_batch b = {
		.labelset = day_key_labelset(key),
		.block = scan->blocks,
		.begin_ms = day_key_ms(key),
		.times_ms = &at,
		.n = 1,
		.stride = 1,
	};
	struct metrics_reading reading;
	struct metrics_cell cell;
	int r;

	if (!has_bit(scan->labelsets, b.labelset))
		return 0;
	r = metrics_open_reading(block, &reading);
	if (r == 0 && s->times_only)
		return scan->fn(scan->ctx, &b);
	while (r == 0 && (r = metrics_next_cell(&reading, &cell)) > 0) {
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

static int scan_table(struct scanning *s, struct day *day, bool hours, struct err *err)
{
	struct metrics_scan *scan = s->scan;
	unsigned int first = (unsigned int)(scan->from_ms / METRICS_HOUR_MS);
	unsigned int end = (unsigned int)((scan->to_ms - 1) / METRICS_HOUR_MS + 1);
	const int64_t in_hours[] = {day_pack_key(scan->service, first, 0, 0),
				    day_pack_key(scan->service, end, 0, 0)};
	const int64_t in_readings[] = {day_key(scan->service, scan->from_ms, 0),
				       day_key(scan->service, scan->to_ms, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = day_query(day, hours ? DAY_HOURS : DAY_READINGS, hours ? in_hours : in_readings, 2,
			  &stmt, err);

	while (r == 0 && (r = day_next(day, stmt, err)) > 0) {
		int64_t key = sqlite3_column_int64(stmt, 0);
		struct view block = day_blob(stmt, 1);

		scan->blocks++;
		r = hours ? scan_hour(s, key, block) : scan_reading(s, key, block);
		if (r == -EBADMSG) {
			damage_add(scan->damage, day, hours ? DAY_HOURS : DAY_READINGS, key);
			r = 0;
		}
		if (r != 0) {
			day_done(stmt);
			return r == -ENOMEM ? err_oom(err) : r;
		}
	}
	return r;
}

static int scan_day(struct metrics_scan *scan, struct day *day, bool times_only, struct err *err)
{
	_cleanup_(scanning_freep) struct scanning *s = NULL;
	int r;

	if (!day_has_metrics(day) || scan->from_ms >= scan->to_ms)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	s->scan = scan;
	s->times_only = times_only;
	r = scan_table(s, day, true, err);
	return r != 0 ? r : scan_table(s, day, false, err);
}

int metrics_scan(struct metrics_scan *scan, struct day *day, struct err *err)
{
	return scan_day(scan, day, false, err);
}

int metrics_scan_times(struct metrics_scan *scan, struct day *day, struct err *err)
{
	return scan_day(scan, day, true, err);
}
